// Runs tests/lib/http_server.py for the lifetime of one test.
#pragma once

#include "core/fd.h"
#include "happens.h"
#include "temporary.h"

#include <chrono>
#include <csignal>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::test {

class HttpServer {
public:
    /// Serves the files below `directory`, by TLS if there is a certificate (PEM, with its key).
    explicit HttpServer(const fs::path& directory, const fs::path& certificate = {})
        : scheme_(certificate.empty() ? "http" : "https"), log_(log_directory_ / "log") {
        int in[2];
        int out[2];
        if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        std::vector<std::string> words = {"/usr/bin/python3",
                                          CONTAINERIZE_SOURCE_DIR "/tests/lib/http_server.py",
                                          directory.string(), log_.string()};
        if (!certificate.empty()) words.push_back(certificate.string());
        std::vector<char*> argv;
        for (auto& word : words)
            argv.push_back(word.data());
        argv.push_back(nullptr);
        const int failed = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        stdin_.reset(in[1]);
        const Fd output(out[0]);
        if (failed != 0) throw std::runtime_error("posix_spawn");
        char buffer[16] = {};
        if (read(output.get(), buffer, sizeof buffer - 1) <= 0) throw std::runtime_error("http_server.py");
        port_ = std::to_string(std::stoi(buffer));
    }
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    ~HttpServer() {
        stdin_.reset();
        waitpid(pid_, nullptr, 0);
    }

    [[nodiscard]] std::string url(const std::string& path, const std::string& host = "127.0.0.1") const {
        return scheme_ + "://" + host + ":" + port_ + "/" + path;
    }
    [[nodiscard]] const std::string& port() const { return port_; }

    struct Seen {
        std::string method, path, authorization, range, if_none_match, if_range, if_modified_since;
    };
    /// All requests so far, or only those for one path.
    [[nodiscard]] std::vector<Seen> seen(const std::string& path = {}) const {
        std::vector<Seen> result;
        std::ifstream log(log_);
        for (std::string line; std::getline(log, line);) {
            std::vector<std::string> fields;
            std::istringstream words(line + "\t");
            for (std::string field; std::getline(words, field, '\t');)
                fields.push_back(field);
            fields.resize(7);
            if (path.empty() || fields[1] == "/" + path)
                result.push_back(
                    {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]});
        }
        return result;
    }

private:
    TemporaryDirectory log_directory_;
    std::string scheme_;
    fs::path log_;
    pid_t pid_ = -1;
    Fd stdin_;
    std::string port_;
};

/// Runs `work` in a process and kills that, some time after the server has got a request from it, or at once
/// if the time is negative. Returns whether it was still at work.
template<class Work>
bool killed_at_work(const HttpServer& server, std::chrono::milliseconds after, Work work) {
    const auto before = server.seen().size();
    const pid_t child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    const auto has_ended = [child] {
        siginfo_t info{};
        return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == child;
    };
    if (after.count() >= 0) {
        EXPECT_TRUE(happens([&] { return server.seen().size() > before || has_ended(); }));
        std::this_thread::sleep_for(after);
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

} // namespace containerize::test

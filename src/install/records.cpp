#include "install/records.h"

#include "util/digest.h"
#include "util/filesystem.h"

#include <ctime>
#include <map>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

/// The lock repeats what stands in the inputs: variables, say. Who may not read one of them may not read it.
Status write_lock(const fs::path& share, const std::string& text, const std::vector<fs::path>& inputs,
                  mode_t umask_bits) {
    mode_t mode = 0666U & ~umask_bits;
    for (const auto& input : inputs) {
        struct stat info {};
        if (stat(input.c_str(), &info) != 0) return fail_errno("cannot read the file", input.string());
        if ((info.st_mode & S_IRGRP) == 0) mode &= ~mode_t{S_IRWXG};
        if ((info.st_mode & S_IROTH) == 0) mode &= ~mode_t{S_IRWXO};
    }
    const auto lock = share / "containerize.lock";
    if (auto done = write_file(lock, text); !done) return done;
    if (chmod(lock.c_str(), mode) != 0) return fail_errno("cannot write the file", lock.string());
    return {};
}

std::string log_name_start() {
    return fmt::format("containerize-{}-build-", geteuid());
}

} // namespace

Result<nlohmann::json> keep_records(const fs::path& share, const Records& records, mode_t umask_bits) {
    std::error_code failed;
    fs::create_directories(share / "inputs", failed);
    if (failed) return fail_errno("cannot make a directory", share.string(), failed.value());
    nlohmann::json listed = nlohmann::json::array();
    std::map<std::string, int> used;
    for (const auto& file : records.inputs) {
        // Includes of the same name from several directories are told apart by a number.
        std::string name = file.filename().string();
        if (const int before = used[name]++; before > 0) name = std::to_string(before) + "-" + name;
        const auto copied = share / "inputs" / name;
        // A file that only its owner may read can hold a password, and stays so.
        if (auto done = copy_file_with_mode(file, copied, umask_bits); !done)
            return fail(std::move(done.error()));
        auto digest = sha256_of_file(copied);
        if (!digest) return fail(std::move(digest.error()));
        listed.push_back({{"file", file.string()}, {"kept_as", name}, {"sha256", *digest}});
    }
    if (auto done = copy_file_with_mode(records.log, share / "build.log", umask_bits); !done)
        return fail(std::move(done.error()));
    if (auto done = write_file(share / "packages.txt", records.packages); !done)
        return fail(std::move(done.error()));
    if (!records.lock.empty())
        if (auto done = write_lock(share, records.lock, records.inputs, umask_bits); !done)
            return fail(std::move(done.error()));
    return listed;
}

fs::path save_log(const fs::path& log, const fs::path& directory) {
    fs::path saved =
        directory / fmt::format("{}{}-{}.log", log_name_start(), utc_now("%Y%m%dT%H%M%SZ"), getpid());
    return copy_file_synced(log, saved) ? saved : fs::path();
}

void sweep_logs(const fs::path& directory) {
    constexpr std::time_t kept_for = std::time_t{7} * 24 * 3600;
    std::error_code problem;
    for (fs::directory_iterator entry(directory, problem), end; !problem && entry != end;
         entry.increment(problem)) {
        const auto name = entry->path().filename().string();
        if (!name.starts_with(log_name_start()) || !name.ends_with(".log")) continue;
        struct stat info {};
        if (lstat(entry->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
            continue;
        if (std::time(nullptr) - info.st_mtime > kept_for) unlink(entry->path().c_str());
    }
}

std::string utc_now(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, format, &parts)};
}

} // namespace containerize::install

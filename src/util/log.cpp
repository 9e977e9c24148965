#include "util/log.h"

#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "util/redact.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace containerize::log {

namespace {

/// The log of this process. One lock for all: lines of the file, the terminal and the progress must not mix.
struct State {
    std::mutex mutex;
    std::unique_ptr<spdlog::logger> file;
    fs::path path;
    std::set<fs::path> copies;
    Level level = Level::normal;
    bool tags = false;
    std::string progress;
};

State& state() {
    static State the_state;
    return the_state;
}

Result<spdlog::sink_ptr> open_sink(const fs::path& file) {
    try {
        auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
        sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z  %v");
        return sink;
    } catch (const spdlog::spdlog_ex&) {
        return fail_errno("cannot write the log", file.string());
    }
}

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
}

constexpr std::string_view erase_line = "\r\x1b[K";

void print_line(const State& log, std::string_view line) {
    if (!log.progress.empty()) print(erase_line);
    print(printable(line));
    print("\n");
    // The progress stays at the bottom.
    print(log.progress);
    std::fflush(stderr);
}

void write_line(Level from_level, std::string_view kind, std::string_view text) {
    const auto line = redacted(text);
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    if (log.file) log.file->info("{}", line);
    if (log.level >= from_level) print_line(log, tagged(kind, line));
}

} // namespace

Status open(const fs::path& file, Level level) {
    auto sink = TRY(open_sink(file));
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    log.file = std::make_unique<spdlog::logger>("", std::move(sink));
    log.file->flush_on(spdlog::level::info);
    // If the disk is full, the build's own writes report it; the log must not bury that under complaints.
    log.file->set_error_handler([](const std::string&) {});
    log.path = file;
    log.level = level;
    return {};
}

Status also(const fs::path& file) {
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    if (log.file) {
        auto text = TRY(read_file(log.path));
        // The layout by a profile takes a second build, with a log of its own.
        const auto how = log.copies.insert(file).second ? std::ios::trunc : std::ios::app;
        // Not by write_file(), whose rename would replace /dev/null or a pipe by a file.
        if (!(std::ofstream(file, std::ios::binary | how) << text << std::flush))
            return fail_errno("cannot write the log", file.string());
    }
    auto sink = TRY(open_sink(file));
    if (log.file) log.file->sinks().push_back(std::move(sink));
    return {};
}

void continue_in(const fs::path& file) {
    auto sink = open_sink(file);
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    if (log.file && sink) log.file->sinks().push_back(std::move(*sink));
}

fs::path current() {
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    return log.path;
}

void use_tags() {
    state().tags = true;
}

std::string tagged(std::string_view kind, std::string_view text) {
    if (!state().tags) return std::string(text);
    std::string lines(text);
    replace_all(lines, "\n", "\n         "); // so that the following lines are seen to belong to it
    return "[ " + std::string(kind) + " ] " + lines;
}

void detail(std::string_view line) {
    write_line(Level::verbose, "DEBUG", line);
}

void info(std::string_view line) {
    write_line(Level::normal, "INFO", line);
}

void warn(std::string_view line) {
    write_line(Level::quiet, "WARNING", (state().tags ? "" : "warning: ") + std::string(line));
}

void table(const std::function<std::string(unsigned)>& draw) {
    constexpr unsigned columns_of_file = 80;
    const auto columns = progress_columns();
    // Some terminals wrap when the last column is filled.
    const auto for_terminal = redacted(draw(columns > 1 ? columns - 1 : columns_of_file));
    const auto for_file = redacted(draw(columns_of_file));
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    if (log.file) log.file->info("{}", for_file);
    if (log.level >= Level::normal) print_line(log, for_terminal);
}

unsigned progress_columns() {
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    winsize size{};
    if (log.level == Level::quiet || isatty(STDERR_FILENO) == 0) return 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

void progress(std::string_view line) {
    auto& log = state();
    const std::lock_guard lock(log.mutex);
    if (log.progress.empty() && line.empty()) return;
    log.progress = printable(line);
    print(erase_line);
    print(log.progress);
    std::fflush(stderr);
}

} // namespace containerize::log

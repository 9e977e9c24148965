#include "util/log.h"

#include <memory>
#include <string>
#include <vector>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace containerize::log {

namespace {

// One log for a run of the program: what happens anywhere in a build must reach it.
struct Log {
    std::shared_ptr<spdlog::sinks::dist_sink_mt> sinks = std::make_shared<spdlog::sinks::dist_sink_mt>();
    spdlog::logger logger{"build", sinks};
    Level level = Level::normal;
    std::filesystem::path file;
};

Log& the_log() {
    static Log log;
    return log;
}

void to_terminal(std::string_view prefix, std::string_view line) {
    std::string text;
    // A bar that is being drawn stands on the terminal's last line: it is drawn again after this one.
    if (isatty(STDERR_FILENO) != 0) text += "\r\033[K";
    text.append(prefix).append(line).push_back('\n');
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

Status add_file(const std::filesystem::path& file) {
    try {
        auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
        sink->set_pattern("%Y-%m-%dT%H:%M:%S%z %v");
        the_log().sinks->add_sink(std::move(sink));
    } catch (const spdlog::spdlog_ex&) {
        return fail_errno("cannot open the log", file.string());
    }
    return {};
}

} // namespace

Status open(const std::filesystem::path& file, Level level) {
    auto& log = the_log();
    log.level = level;
    log.file = file;
    log.logger.flush_on(spdlog::level::info);
    return add_file(file);
}

Status also(const std::filesystem::path& file) {
    return add_file(file);
}

std::filesystem::path current() {
    return the_log().file;
}

void detail(std::string_view line) {
    the_log().logger.info("{}", line);
    if (the_log().level == Level::verbose) to_terminal("", line);
}

void info(std::string_view line) {
    the_log().logger.info("{}", line);
    if (the_log().level != Level::quiet) to_terminal("", line);
}

void warn(std::string_view line) {
    the_log().logger.warn("warning: {}", line);
    to_terminal("warning: ", line);
}

Level level() {
    return the_log().level;
}

} // namespace containerize::log

#include "prefix/records.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/ownership.h"
#include "core/read_write.h"
#include "core/text.h"
#include "util/copy.h"
#include "util/digest.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <ctime>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

constexpr std::uint64_t largest_input = std::uint64_t{256} << 20U;

/// Creates a file that nobody else can open before it has its final mode. Fails if it exists.
Status write_new_file(const fs::path& path, std::string_view content, mode_t mode) {
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file || !write_all(file.get(), content) || fchmod(file.get(), mode) != 0 || fsync(file.get()) != 0 ||
        close(file.release()) != 0)
        return fail_errno("cannot write the file", path.string());
    return {};
}

Result<mode_t> mode_of(const fs::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) return fail_errno("cannot read the file", file.string());
    return info.st_mode & 0777U;
}

/// The lock repeats parts of the inputs and of the previous lock, such as variables: only those who can read
/// all of them may read it.
Status write_lock(const fs::path& share, const Records& records, mode_t umask_bits) {
    mode_t mode = mode_of_new_files & ~umask_bits;
    std::vector<mode_t> of_repeated;
    for (const auto& input : records.inputs)
        of_repeated.push_back(input.mode);
    if (quiet::exists(records.previous_lock)) of_repeated.push_back(TRY(mode_of(records.previous_lock)));
    for (const auto one : of_repeated) {
        if ((one & S_IRGRP) == 0) mode &= ~mode_t{S_IRWXG};
        if ((one & S_IROTH) == 0) mode &= ~mode_t{S_IRWXO};
    }
    return write_new_file(share / records.lock.name, records.lock.text, mode);
}

/// Removes redaction marks from URLs. Without a login, pip, conda and git look one up in ~/.netrc; they would
/// send the mark literally.
std::string without_marked_logins(std::string text) {
    const std::string mark(redaction_mark);
    replace_all(text, "://" + mark + "@", "://");
    replace_all(text, ":" + mark + "@", "@"); // keep the user name of an SSH URL
    return text;
}

/// Whether the readers of JSON, TOML and YAML see a secret that redacted() does not.
bool has_escaped_secret(const std::string& text) {
    const auto seen = without_escapes(text);
    return seen != text && redacted(seen) != seen;
}

/// The text of an input without its secrets.
std::string without_secrets(const Input& input) {
    const auto text = decode(input.content, input.file);
    const auto& readable = text ? *text : input.content;
    const auto kept = without_marked_logins(redacted(readable));
    if (has_escaped_secret(kept))
        return "This copy was left out, because the file contains a login with backslashes.\n";
    return kept == readable ? input.content : kept;
}

/// Keeps a private file private: not every secret can be recognised.
Status keep_input(const Input& input, const fs::path& copy, mode_t umask_bits) {
    return write_new_file(copy, without_secrets(input), input.mode & mode_of_new_directories & ~umask_bits);
}

/// A name that no other copy has: files of the same name from different directories are told apart by a
/// number.
std::string unused_name(const std::string& name, std::set<std::string>& used) {
    auto candidate = name;
    for (int number = 1; !used.insert(candidate).second; ++number)
        candidate = std::to_string(number) + "-" + name;
    return candidate;
}

std::string log_directory_name() {
    return fmt::format("containerize-{}-logs", geteuid());
}

} // namespace

Result<Input> read_input(const fs::path& file) {
    auto content = TRY(read_file(file, largest_input));
    const auto mode = TRY(mode_of(file));
    return Input{.file = file, .content = std::move(content), .mode = mode};
}

Result<nlohmann::json> keep_records(const fs::path& share, const Records& records, mode_t umask_bits) {
    TRY(make_directories(share / "inputs"));
    nlohmann::json listed = nlohmann::json::array();
    std::set<std::string> used;
    for (const auto& input : records.inputs) {
        const auto name = unused_name(input.file.filename().string(), used);
        const auto copied = share / "inputs" / name;
        TRY(keep_input(input, copied, umask_bits));
        auto digest = TRY(sha256_of_file(copied));
        listed.push_back({{"file", input.file.string()}, {"kept_as", name}, {"sha256", digest}});
    }
    TRY(copy_file_with_mode(records.log, share / "build.log", umask_bits));
    TRY(write_file(share / "packages.txt", records.packages));
    if (!records.lock.text.empty()) TRY(write_lock(share, records, umask_bits));
    return listed;
}

fs::path save_log(const fs::path& log, const fs::path& directory) {
    const auto ours = directory / log_directory_name();
    mkdir(ours.c_str(), 0700);
    if (!open_private_directory(ours)) return {};
    fs::path saved = ours / fmt::format("build-{}-{}.log", utc_now("%Y%m%dT%H%M%SZ"), getpid());
    constexpr mode_t private_bits = 077;
    return copy_file_with_mode(log, saved, private_bits) ? saved : fs::path();
}

void sweep_logs(const fs::path& directory) {
    constexpr std::time_t kept_for = std::time_t{7} * 24 * 3600;
    const auto ours = directory / log_directory_name();
    if (!open_private_directory(ours)) return;
    for (const auto& name : names_in(ours)) {
        if (!name.starts_with("build-") || !name.ends_with(".log")) continue;
        const auto path = ours / name;
        struct stat info {};
        if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        if (std::time(nullptr) - info.st_mtime > kept_for) unlink(path.c_str());
    }
}

std::string utc_now(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, format, &parts)};
}

} // namespace containerize::prefix

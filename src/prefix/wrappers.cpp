#include "prefix/wrappers.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "launch/session_format.h"
#include "prefix/states.h"
#include "util/copy.h"
#include "util/log.h"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

constexpr const char* debug_shell = "bin/_debug_shell";

enum class EntryKind { command, text, other };

// Maps a path inside to the staging directory; paths that are not in the environment stay as they are.
fs::path outside(const fs::path& path, const WrapperRequest& request) {
    for (const auto* place : {&request.prefix, &request.mask}) {
        const auto relative = path.lexically_relative(*place);
        const bool within = !place->empty() && !relative.empty() && *relative.begin() != "..";
        if (within) return request.root / relative;
    }
    return path;
}

// The path of a directory of the environment, which may be a symlink: relative links in it start at its
// target.
fs::path real_directory(const fs::path& path, const WrapperRequest& request) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(request.root / path, no_link);
    if (no_link) return request.root / path;
    return outside((request.prefix / path).parent_path() / target, request).lexically_normal();
}

EntryKind kind_of(const fs::path& entry, const WrapperRequest& request) {
    std::error_code failed;
    fs::path file = entry;
    // Resolve links as they would be resolved inside: their targets may name the prefix, which does not exist
    // yet.
    for (int depth = 0; depth < 40 && fs::is_symlink(fs::symlink_status(file, failed)); ++depth) {
        const fs::path target = fs::read_symlink(file, failed);
        file = outside(target.is_absolute() ? target : (file.parent_path() / target).lexically_normal(),
                       request);
        if (!is_below(file, request.root)) break;
    }
    struct stat info {};
    if (!is_below(file, request.root) && request.surroundings.exists(file.string()))
        return request.surroundings.is_program(file.string()) ? EntryKind::command : EntryKind::other;
    // `file` may also be on the host, in a directory that is visible inside.
    if (stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return EntryKind::other;
    if ((info.st_mode & 0111U) != 0) return EntryKind::command;
    return file == entry ? EntryKind::text : EntryKind::other;
}

// Adds an executable copy of `program`, or a hard link to the existing installation's if that is identical,
// so that an update writes only what changed.
Status add_program(const fs::path& program, const fs::path& name, const WrapperRequest& request) {
    const fs::path to = request.output / name;
    TRY(make_directories(to.parent_path()));
    const fs::path existing = request.existing / name;
    const mode_t mode = mode_of_new_directories & ~request.umask_bits;
    struct stat info {};
    if (!request.existing.empty() && lstat(existing.c_str(), &info) == 0 && (info.st_mode & 07777U) == mode &&
        same_content(program, existing) && link(existing.c_str(), to.c_str()) == 0)
        return {};
    TRY(copy_file_synced(program, to));
    if (chmod(to.c_str(), mode) != 0) return fail_errno("cannot copy a program", to.string());
    return {};
}

} // namespace

Result<std::vector<std::string>> check_wrapper_paths(const std::vector<std::string>& given,
                                                     const fs::path& prefix) {
    std::vector<std::string> paths = {"bin"};
    for (const auto& one : given) {
        fs::path relative = fs::path(one).lexically_normal();
        if (relative.is_absolute()) {
            const auto resolved = resolve(relative);
            relative = (resolved ? *resolved : relative).lexically_relative(prefix);
        }
        if (!relative.has_filename()) relative = relative.parent_path();
        if (relative.empty() || relative == "." || *relative.begin() == "..")
            return fail_input("a wrapper path must be below the prefix", {}, one,
                              "Give it relative to the prefix, such as opt/tool/bin.");
        if (*relative.begin() == states_name || *relative.begin() == layers_name)
            return fail_input("a wrapper path must not be in a directory that containerize uses", {}, one,
                              "Use another name for the directory of the commands.");
        if (std::ranges::find(paths, relative.string()) == paths.end()) paths.push_back(relative.string());
    }
    return paths;
}

namespace {

Status link_program(const fs::path& program, const WrapperRequest& request) {
    const auto bin = real_directory("bin", request);
    if (!is_below(bin, request.root))
        return fail_input("cannot create a wrapper for a single program",
                          "`bin` points outside the installation", program.string(),
                          "Give the program's directory.");
    const auto target = (request.root / program).lexically_relative(bin);
    const auto link = bin / program.filename();
    std::error_code failed;
    if (link == request.root / program || fs::read_symlink(link, failed) == target) return {};
    fs::create_directories(bin, failed);
    fs::create_symlink(target, link, failed);
    if (failed == std::errc::file_exists) {
        log::warn(program.string() + " gets no wrapper, because bin/" + program.filename().string() +
                  " already exists.");
        return {};
    }
    return failed ? fail_errno("cannot create a link", link.string(), failed.value()) : Status();
}

} // namespace

Result<std::vector<std::string>> existing_wrapper_paths(const WrapperRequest& request,
                                                        const std::vector<std::string>& optional) {
    std::vector<std::string> directories;
    for (const auto& path : request.paths) {
        // Software of another layout may have no "bin".
        if (path == "bin" || quiet::is_directory(real_directory(path, request))) {
            directories.push_back(path);
        } else if (kind_of(request.root / path, request) == EntryKind::command) {
            TRY(link_program(path, request));
        } else if (std::ranges::find(optional, path) == optional.end()) {
            return fail_input(
                "the environment has no such directory or program", {}, path,
                "Give --wrapper-paths directories or programs that the packages or your scripts create.");
        }
    }
    return directories;
}

Result<std::size_t> make_wrappers(const WrapperRequest& request) {
    std::error_code failed;
    const fs::path first = request.output / launcher_file;
    TRY(add_program(request.libexec / "launcher", launcher_file, request));

    const auto add = [&](const fs::path& wrapper) -> Status {
        if (link(first.c_str(), wrapper.c_str()) == 0) return {};
        if (errno == EEXIST) return {};
        // Without hard links, or at the limit of links to a file, the launcher gets the name from how it was
        // called.
        if (symlink(fs::relative(first, wrapper.parent_path()).c_str(), wrapper.c_str()) == 0) return {};
        return fail_errno("cannot create a wrapper", wrapper.string());
    };
    TRY(add(request.output / debug_shell));

    std::size_t commands = 0;
    // "bin" comes first, so that its own commands win over links to those of other directories.
    std::error_code taken;
    for (const auto& path : request.paths) {
        if (!fs::is_directory(real_directory(path, request), failed)) {
            if (failed && failed != std::errc::no_such_file_or_directory)
                return fail_errno("cannot list the environment's commands", path, failed.value());
            continue;
        }
        const fs::path directory = request.output / path;
        const auto before = commands;
        TRY(make_directories(directory));
        for (const auto& entry : entries_in(real_directory(path, request), failed)) {
            const auto wrapper = directory / entry.path().filename();
            const auto kind = kind_of(entry.path(), request);
            if (kind == EntryKind::command) {
                TRY(add(wrapper));
                if (path != "bin")
                    fs::create_symlink(wrapper.lexically_relative(request.output / "bin"),
                                       request.output / "bin" / wrapper.filename(), taken);
                ++commands;
            } else if (kind == EntryKind::text) {
                TRY(copy_file_with_mode(entry.path(), wrapper, request.umask_bits));
            }
        }
        if (path != "bin" && commands == before) log::warn("no programs found in " + path + ".");
        if (failed) return fail_errno("cannot list the environment's commands", path, failed.value());
    }
    return commands;
}

Status add_session(const WrapperRequest& request) {
    const fs::path session = launch::session_program_file();
    TRY(add_program(request.libexec / "session", session, request));
    // A hard link to the session program; a command of this name in the environment wins.
    const fs::path helper = request.output / "bin/containerize-rank";
    if (link((request.output / session).c_str(), helper.c_str()) != 0 && errno != EEXIST &&
        symlink((fs::path("..") / session).c_str(), helper.c_str()) != 0)
        return fail_errno("cannot create a wrapper", helper.string());
    const fs::path mark = request.root / "pyvenv.cfg";
    if (!quiet::exists(mark)) return {};
    return copy_file_with_mode(mark, request.output / "pyvenv.cfg", request.umask_bits);
}

} // namespace containerize::prefix

#include "base/bootstrap.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "elf/library_cache.h"
#include "elf/read_elf.h"
#include "image/writer.h"
#include "util/digest.h"
#include "util/json.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"

#include <algorithm>
#include <map>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace containerize::base {

namespace {

/// Where programs are searched, because a user's PATH may name anything.
constexpr const char* program_path = "/usr/bin:/bin:/usr/sbin:/sbin";

constexpr std::string_view needed_programs[] = {"sh", "cat", "ls", "env"};
constexpr std::string_view programs[] = {
    "[",         "arch",      "awk",       "b2sum",    "base32",  "base64",  "basename",  "bash",
    "bunzip2",   "bzip2",     "chgrp",     "chmod",    "chown",   "cksum",   "clear",     "cmp",
    "comm",      "cp",        "csplit",    "cut",      "dash",    "date",    "dd",        "df",
    "diff",      "dir",       "dircolors", "dirname",  "du",      "echo",    "egrep",     "expand",
    "expr",      "factor",    "false",     "fgrep",    "find",    "flock",   "fmt",       "fold",
    "gawk",      "getconf",   "getent",    "getopt",   "grep",    "groups",  "gunzip",    "gzip",
    "head",      "hostid",    "hostname",  "id",       "install", "join",    "kill",      "ldconfig",
    "ldd",       "link",      "ln",        "locale",   "logname", "lscpu",   "mawk",      "md5sum",
    "mkdir",     "mkfifo",    "mknod",     "mktemp",   "more",    "mv",      "nice",      "nl",
    "nohup",     "nproc",     "numfmt",    "od",       "paste",   "pathchk", "pgrep",     "pkill",
    "pr",        "printenv",  "printf",    "ps",       "ptx",     "pwd",     "readlink",  "realpath",
    "rm",        "rmdir",     "sed",       "seq",      "setsid",  "sha1sum", "sha224sum", "sha256sum",
    "sha384sum", "sha512sum", "shred",     "shuf",     "sleep",   "sort",    "split",     "stat",
    "stdbuf",    "stty",      "sum",       "sync",     "tac",     "tail",    "tar",       "taskset",
    "tee",       "test",      "timeout",   "touch",    "tput",    "tr",      "true",      "truncate",
    "tsort",     "tty",       "uname",     "unexpand", "uniq",    "unlink",  "unxz",      "users",
    "vdir",      "wc",        "which",     "who",      "whoami",  "xargs",   "xz",        "yes",
    "zcat"};
/// Libraries that programs look for at run time without naming them, and those that wheels need.
constexpr std::string_view libraries[] = {
    "libanl.so.1",     "libc.so.6",         "libcrypt.so.1",   "libcrypt.so.2",  "libdl.so.2",
    "libgcc_s.so.1",   "libgomp.so.1",      "libm.so.6",       "libmvec.so.1",   "libnss_compat.so.2",
    "libnss_dns.so.2", "libnss_files.so.2", "libpthread.so.0", "libresolv.so.2", "librt.so.1",
    "libstdc++.so.6",  "libutil.so.1"};
/// Every system has one of the first three; the others become links to it. The last three are where OpenSSL
/// itself looks, depending on the distribution.
constexpr std::string_view certificates[] = {"etc/ssl/certs/ca-certificates.crt",
                                             "etc/pki/tls/certs/ca-bundle.crt",
                                             "etc/ssl/ca-bundle.pem",
                                             "etc/ssl/cert.pem",
                                             "etc/pki/tls/cert.pem",
                                             "usr/lib/ssl/cert.pem"};
constexpr std::string_view terminals[] = {"d/dumb",          "l/linux", "s/screen", "s/screen-256color",
                                          "t/tmux-256color", "v/vt100", "x/xterm",  "x/xterm-256color"};
constexpr std::string_view directories[] = {"dev",  "etc", "home", "mnt",           "opt",    "proc",
                                            "root", "run", "sys",  "usr/local/bin", "var/log"};
constexpr std::string_view library_directories[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};

constexpr const char* passwd =
    "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n";
constexpr const char* group = "root:x:0:\nnogroup:x:65534:\n";
constexpr const char* nsswitch =
    "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n";
constexpr const char* hosts = "127.0.0.1 localhost\n::1 localhost\n";

/// The future content of the image, by path without leading '/'; sorted, so that the same content gives the
/// same bytes.
class Collection {
public:
    Collection() {
        const auto cache = host_.text("/etc/ld.so.cache", elf::largest_library_cache);
        for (const auto& [name, path] :
             elf::parse_library_cache(cache).value_or(std::vector<elf::CachedLibrary>()))
            cached_.try_emplace(name, path);
    }

    /// Adds a file of the host at its own path, with what it needs; a link is replaced by its file. Returns
    /// the path in the image; empty if there is no such file.
    std::string add_file(const fs::path& file) {
        auto place = place_of(file);
        if (!place.empty()) add_with_needs(place, file);
        return place;
    }
    bool add_library(const std::string& name, const std::vector<std::string>& run_path = {}) {
        const auto file = find_library(name, run_path);
        if (file.empty()) return false;
        // All go to the directory of the C library, where the loader looks by default.
        const auto directory = library_directory();
        if (directory.empty()) return false;
        add_with_needs((directory / name).relative_path().string(), file);
        return true;
    }
    void add_tree(const fs::path& directory, const std::set<std::string>& left_out) {
        std::error_code failed;
        for (const auto& entry : entries_in(directory, failed)) {
            if (left_out.contains(entry.path().filename())) continue;
            if (entry.is_directory(failed))
                add_tree(entry.path(), left_out);
            else if (entry.is_regular_file(failed))
                add_file(entry.path());
        }
    }
    void add_text(const std::string& place, std::string content) {
        entries_[place] = {.content = std::move(content)};
    }
    void add_link(const std::string& place, std::string target) {
        entries_.try_emplace(place, Entry{.link = std::move(target)});
    }
    [[nodiscard]] bool has(std::string_view place) const { return entries_.contains(std::string(place)); }

    Status write(image::Writer& writer) const {
        constexpr mode_t shared_temporary = 01777;
        for (const auto directory : directories)
            TRY(writer.add_directory(directory, {.mode = 0755}));
        for (const char* directory : {"tmp", "var/tmp"})
            TRY(writer.add_directory(directory, {.mode = shared_temporary}));
        for (const auto& [place, entry] : entries_) {
            if (interrupted()) return fail_interrupted();
            TRY(write(writer, place, entry));
        }
        return {};
    }

private:
    struct Entry {
        fs::path source = {};     ///< a file of the host, or
        std::string content = {}; ///< this, or
        std::string link = {};    ///< a link to this
    };

    static Status write(image::Writer& writer, const std::string& place, const Entry& entry) {
        if (!entry.link.empty()) return writer.add_symlink(place, entry.link, {.mode = 0777});
        image::Attributes attributes;
        std::string content = entry.content;
        if (!entry.source.empty()) {
            struct stat info {};
            content = TRY(read_file(entry.source, 512U << 20U));
            if (stat(entry.source.c_str(), &info) != 0)
                return fail_errno("cannot read", entry.source.string());
            attributes.mode = image::mode_for_sharing(info.st_mode & 07777U, 0);
            attributes.mtime = static_cast<std::uint32_t>(info.st_mtime);
        }
        TRY(writer.begin_file(place, attributes));
        TRY(writer.append(std::as_bytes(std::span(content))));
        return writer.end_file();
    }

    /// The path with links in its directories resolved (/bin is /usr/bin on most systems), but not in its
    /// last name. Empty if the file cannot be read.
    static std::string place_of(const fs::path& file) {
        std::error_code failed;
        const auto directory = fs::canonical(file.parent_path(), failed);
        if (failed || access(file.c_str(), R_OK) != 0 || !fs::is_regular_file(file, failed)) return {};
        return (directory / file.filename()).relative_path().string();
    }

    /// What the file needs is added if it is a program or library of this machine.
    void add_with_needs(const std::string& place, const fs::path& file) {
        if (!entries_.try_emplace(place, Entry{.source = file}).second) return;
        const auto elf = elf::read_elf(host_, file);
        if (!elf || elf->machine != elf::this_machine) return;
        if (!elf->interpreter.empty()) add_file(elf->interpreter);
        std::vector<std::string> run_path;
        for (auto directory : elf->run_path) {
            replace_all(directory, "$ORIGIN", file.parent_path().string());
            if (directory.starts_with('/')) run_path.push_back(std::move(directory));
        }
        for (const auto& name : elf->needed)
            if (!add_library(name, run_path)) log::detail("the host has no " + name);
    }

    [[nodiscard]] fs::path find_library(const std::string& name,
                                        const std::vector<std::string>& run_path) const {
        if (name.find('/') != std::string::npos) return {};
        std::vector<fs::path> candidates;
        for (const auto& directory : run_path)
            candidates.push_back(fs::path(directory) / name);
        if (const auto cached = cached_.find(name); cached != cached_.end())
            candidates.push_back(cached->second);
        for (const auto directory : library_directories)
            candidates.push_back(fs::path(directory) / name);
        for (const auto& candidate : candidates)
            if (access(candidate.c_str(), R_OK) == 0) return candidate;
        return {};
    }

    [[nodiscard]] fs::path library_directory() const {
        std::error_code failed;
        const auto library = find_library("libc.so.6", {});
        return library.empty() ? fs::path() : fs::canonical(library.parent_path(), failed);
    }

    image::DirectoryView host_{"/"};
    std::map<std::string, fs::path> cached_;
    std::map<std::string, Entry> entries_;
};

std::unexpected<Error> cannot(std::string why) {
    return fail({.what = "cannot create a base image of this host",
                 .why = std::move(why),
                 .hint = "Pull one instead: `containerize base pull docker://debian:12-slim`."});
}

/// Links such as /bin -> usr/bin, as on the host.
void add_merged_directories(Collection& collection) {
    std::error_code failed;
    for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "usr/lib64", "usr/sbin"}) {
        const auto path = fs::path("/") / name;
        if (fs::is_symlink(path, failed)) collection.add_link(name, fs::read_symlink(path, failed).string());
    }
}

void add_certificates(Collection& collection) {
    std::string first;
    for (const auto place : certificates)
        if (auto added = collection.add_file(fs::path("/") / place); first.empty()) first = std::move(added);
    if (first.empty()) return log::warn("no CA certificates were found on this host");
    for (const auto place : certificates)
        // If directories on the way are links, the file was added at another path.
        if (!collection.has(place)) collection.add_link(std::string(place), "/" + first);
}

void add_settings(Collection& collection) {
    collection.add_text("etc/passwd", passwd);
    collection.add_text("etc/group", group);
    collection.add_text("etc/nsswitch.conf", nsswitch);
    collection.add_text("etc/hosts", hosts);
    collection.add_text("etc/resolv.conf", "");
    for (const char* file : {"/etc/os-release", "/etc/services", "/etc/protocols", "/usr/share/zoneinfo/UTC",
                             "/usr/share/zoneinfo/Etc/UTC"})
        collection.add_file(file);
    collection.add_link("etc/localtime", "/usr/share/zoneinfo/UTC");
    for (const char* database : {"/usr/share/terminfo", "/lib/terminfo"})
        for (const auto terminal : terminals)
            collection.add_file(fs::path(database) / terminal);
    for (const char* locale : {"/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8"})
        collection.add_tree(locale, {});
}

Status add_python(Collection& collection, const Environment& environment) {
    const auto python = find_program("python3", program_path);
    if (!python) return cannot("the host has no python3");
    auto told = TRY(capture(
        {.argv = {python->string(), "-I", "-c",
                  "import json, sys, sysconfig\n"
                  "print(json.dumps([sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib')]))"},
         .environment = environment}));
    const auto paths = parse_json_quietly(told.output);
    if (!told.ok() || !paths.is_array())
        return cannot(python->string() + " does not report where its standard library is");
    // Environments name the interpreter with its version.
    std::error_code failed;
    collection.add_file(*python);
    collection.add_file(fs::canonical(*python, failed));
    for (const auto& path : paths)
        if (path.is_string())
            // Byte-code stays, or each start would compile what it imports: files keep their times, which
            // byte-code contains. site-packages are not Python's own.
            collection.add_tree(path.get<std::string>(), {"test", "tests", "idlelib", "tkinter",
                                                          "site-packages", "dist-packages", "turtledemo"});
    // Debian's Python needs these to make a venv.
    collection.add_tree("/usr/share/python-wheels", {});
    return {};
}

Result<Collection> collect(const BootstrapOptions& how, const Environment& environment) {
    Collection collection;
    add_merged_directories(collection);
    for (const auto name : needed_programs) {
        const auto program = find_program(name, program_path);
        if (!program || collection.add_file(*program).empty())
            return cannot("the host has no " + std::string(name));
    }
    if (!collection.add_library("libc.so.6")) return cannot("the host's C library is not glibc");
    for (const auto name : programs)
        if (const auto program = find_program(name, program_path)) collection.add_file(*program);
    for (const auto name : libraries)
        collection.add_library(std::string(name));
    add_certificates(collection);
    add_settings(collection);
    if (how.python) TRY(add_python(collection, environment));
    return collection;
}

Status write_image(const Collection& collection, const fs::path& file, const Options& options) {
    auto writer = TRY(image::Writer::create(file, options.writer));
    TRY(collection.write(writer));
    TRY(writer.finish());
    return sync_file(file);
}

} // namespace

Result<BaseImage> bootstrap(const BootstrapOptions& how, const Options& options) {
    if (!how.output.empty() && how.output.extension() != ".sqfs")
        return fail_input("invalid name for an image", "--base recognises images by the ending .sqfs",
                          how.output.string(), "Give a name that ends in .sqfs.");
    Stage stage("Creating a base image of this host");
    auto collection = TRY(collect(how, options.environment));
    if (!how.output.empty()) {
        TRY(write_image(collection, how.output, options));
        auto base = obtain(how.output.string(), options);
        if (base) stage.finish(human_bytes(base->size));
        return base;
    }
    // The digest is known only afterwards, so all images that are made this way share a staging.
    auto staging = TRY(StagingDirectory::enter(options.store, "sha256:bootstrap"));
    const auto file = staging.path() / "image.sqfs";
    std::error_code ignored;
    fs::remove(file, ignored); // left by a killed process
    TRY(write_image(collection, file, options));
    auto digest = TRY(sha256_of_file(file));
    StoredImage image{.file = file, .references = {"bootstrap:" + digest}, .digest = "sha256:" + digest};
    image.config.platform = {.os = "linux", .architecture = this_architecture()};
    image.config.environment = {usual_path, "LANG=C.UTF-8"};
    auto stored = TRY(add_image(options.store, std::move(image)));
    staging.clean();
    stage.finish(human_bytes(stored.size));
    return base_image(stored, stored.references.front());
}

} // namespace containerize::base

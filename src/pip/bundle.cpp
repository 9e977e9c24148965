#include "pip/bundle.h"

#include "core/entries.h"
#include "core/text.h"

#include <string>
#include <system_error>

namespace containerize::pip {

namespace {

namespace fs = std::filesystem;

// Prints the copy's base prefix, those of the original's modules that it cannot import, and the libpython
// that it has loaded, if any.
constexpr const char* proof = R"py(
import sys
wanted = sys.argv[1].split(",")
missing = []
for name in wanted:
    try:
        __import__(name)
    except Exception as problem:
        missing.append("%s (%s)" % (name, problem))
library = ""
for line in open("/proc/self/maps", "rb"):
    path = line.rstrip().rpartition(b" ")[2]
    if b"/libpython" in path:
        library = path.decode(errors="replace")
print(sys.base_prefix)
print("; ".join(missing))
print(library)
)py";

constexpr const char* modules_of_original = R"py(
found = []
for name in ["ssl", "ctypes", "sqlite3", "zlib", "bz2", "lzma", "hashlib", "decimal", "venv", "ensurepip", "readline"]:
    try:
        __import__(name)
        found.append(name)
    except Exception:
        pass
print(",".join(found))
)py";

std::unexpected<Error> refused(const Interpreter& original, std::string why) {
    return fail_input("this Python cannot be bundled", std::move(why), original.executable.string(),
                      "Leave out --bundle-python, or choose a relocatable interpreter with --python.");
}

Status copy_directory(const fs::path& from, const fs::path& to, const fs::path& library);

bool is_within(const fs::path& path, const fs::path& directory) {
    const auto relative = path.lexically_relative(directory);
    return !relative.empty() && *relative.begin() != "..";
}

// Copies the target of a link that leads out of the library, such as Debian's sitecustomize.py.
Status copy_entry(const fs::directory_entry& entry, const fs::path& to, const fs::path& library) {
    std::error_code failed;
    if (entry.is_symlink(failed)) {
        const auto target = fs::canonical(entry.path(), failed);
        if (failed) return {}; // a dangling link
        if (is_within(target, library) && fs::read_symlink(entry.path()).is_relative())
            fs::copy_symlink(entry.path(), to, failed);
        else
            fs::copy(target, to, fs::copy_options::recursive, failed);
    } else if (entry.is_directory(failed)) {
        return copy_directory(entry.path(), to, library);
    } else {
        fs::copy_file(entry.path(), to, failed);
    }
    if (failed) return fail_errno("cannot copy the standard library", entry.path().string(), failed.value());
    return {};
}

Status copy_directory(const fs::path& from, const fs::path& to, const fs::path& library) {
    std::error_code failed;
    fs::create_directories(to, failed);
    for (const auto& entry : entries_in(from, failed))
        if (entry.path().filename() != "__pycache__")
            TRY(copy_entry(entry, to / entry.path().filename(), library));
    if (failed) return fail_errno("cannot copy the standard library", from.string(), failed.value());
    return {};
}

// Copies the standard library without site-packages, which belong to the host, and without tests.
Status copy_library(const fs::path& from, const fs::path& to) {
    std::error_code failed;
    fs::create_directories(to, failed);
    if (failed) return fail_errno("cannot copy the standard library", to.string(), failed.value());
    for (const auto& entry : entries_in(from, failed)) {
        const auto name = entry.path().filename();
        if (name == "site-packages" || name == "dist-packages" || name == "__pycache__" || name == "test")
            continue;
        TRY(copy_entry(entry, to / name, from));
    }
    if (failed) return fail_errno("cannot copy the standard library", from.string(), failed.value());
    return {};
}

std::string line_of(const std::string& text, std::size_t number) {
    const auto lines = split(text, '\n');
    return number < lines.size() ? std::string(lines[number]) : std::string();
}

} // namespace

Result<Interpreter> bundle_python(const Interpreter& original, const BundleRequest& request) {
    if (!is_within(original.standard_library, original.base_prefix) ||
        !is_within(original.executable, original.base_prefix))
        return refused(original,
                       "its program or its standard library is outside " + original.base_prefix.string());
    const fs::path place = request.root / "python";
    const auto library = original.standard_library.lexically_relative(original.base_prefix);
    TRY(copy_library(original.standard_library, place / library));

    const std::string name = "python3." + std::to_string(original.minor);
    std::error_code failed;
    fs::create_directories(place / "bin", failed);
    fs::copy_file(original.executable, place / "bin" / name, failed);
    if (failed)
        return fail_errno("cannot copy the interpreter", original.executable.string(), failed.value());
    fs::create_symlink(name, place / "bin/python3", failed);
    const fs::path headers = fs::path("include") / name;
    if (fs::exists(original.base_prefix / headers, failed)) {
        fs::create_directories(place / "include", failed);
        fs::copy(original.base_prefix / headers, place / headers, fs::copy_options::recursive, failed);
        if (failed) return fail_errno("cannot copy Python's headers", headers.string(), failed.value());
    }
    for (const auto& entry : entries_in(original.base_prefix / "lib", failed))
        if (entry.path().filename().string().starts_with("libpython"))
            fs::copy(entry.path(), place / "lib" / entry.path().filename(), fs::copy_options::copy_symlinks,
                     failed);

    auto modules = TRY(capture({.argv = {original.executable.string(), "-I", "-c", modules_of_original},
                                .environment = request.environment,
                                .working_directory = "/"}));
    Interpreter copy = original;
    copy.base_prefix = request.prefix / "python";
    copy.executable = copy.base_prefix / "bin" / name;
    copy.standard_library = copy.base_prefix / library;
    auto proven =
        TRY(capture({.argv = {copy.executable.string(), "-I", "-c", proof, line_of(modules.output, 0)},
                     .environment = request.environment,
                     .working_directory = "/",
                     .in_child = request.in_child}));
    if (!proven.ok()) return refused(original, "its copy does not start");
    if (line_of(proven.output, 0) != copy.base_prefix)
        return refused(original, "its copy still uses the standard library in " + line_of(proven.output, 0));
    if (const auto missing = line_of(proven.output, 1); !missing.empty())
        return refused(original, "its copy cannot import " + missing);
    if (const auto loaded = line_of(proven.output, 2);
        !loaded.empty() && !is_within(loaded, copy.base_prefix))
        return refused(original, "its copy still uses the library " + loaded);
    return copy;
}

} // namespace containerize::pip

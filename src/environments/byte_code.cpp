#include "environments/byte_code.h"

#include "core/entries.h"
#include "core/filesystem.h"

namespace containerize::environments {

namespace {

/// Makes byte-code of the listed files in parallel and skips those that this Python version cannot compile.
///
/// Uses unchecked hashes, so that no run compares timestamps or recompiles; Python 3.6 does not support them
/// yet. What an installer has compiled differs from that only in the header, which is replaced. The result is
/// a new file, because the old one may have more hard links.
///
/// Forces the "fork" start method: the others, which Python 3.14 prefers, re-import the main program, and
/// `-c` has no file to import.
constexpr const char* compile_program = R"(
import importlib.util, os, py_compile, struct, sys
def reuse_byte_code(path):
    cached = importlib.util.cache_from_source(path)
    try:
        with open(cached, 'rb') as file:
            code = file.read()
    except OSError:
        return False
    with open(path, 'rb') as file:
        digest = importlib.util.source_hash(file.read())
    source = os.stat(path)
    magic = importlib.util.MAGIC_NUMBER
    by_time = struct.pack('<LLL', 0, int(source.st_mtime) & 0xffffffff, source.st_size & 0xffffffff)
    by_hash = struct.pack('<L', 3) + digest
    if code[:16] not in (magic + by_time, magic + by_hash):
        return False
    mode = os.stat(cached).st_mode & 0o777
    os.unlink(cached)
    with os.fdopen(os.open(cached, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), 'wb') as file:
        file.write(magic + struct.pack('<L', 1) + digest + code[16:])
    return True
def compile_one(path):
    try:
        if not hasattr(py_compile, 'PycInvalidationMode'):
            py_compile.compile(path, doraise=True)
        elif not reuse_byte_code(path):
            py_compile.compile(path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except Exception as problem:
        print(path, type(problem).__name__)
if __name__ == '__main__':
    with open(sys.argv[1], 'rb') as file:
        paths = [path.decode('utf-8', 'surrogateescape') for path in file.read().split(b'\0') if path]
    jobs = int(sys.argv[2])
    if jobs > 1 and len(paths) > 100:
        import multiprocessing
        if hasattr(multiprocessing, 'get_context'):
            multiprocessing = multiprocessing.get_context('fork')
        pool = multiprocessing.Pool(jobs)
        pool.map(compile_one, paths, 64)
        pool.close()
        pool.join()
    else:
        for path in paths:
            compile_one(path)
)";

} // namespace

std::set<std::string> sources_among(const std::vector<std::string>& files, const std::string& python_name) {
    std::set<std::string> sources;
    for (const auto& path : files)
        if (path.ends_with(".py") && path.starts_with("lib/" + python_name + "/")) sources.insert(path);
    return sources;
}

std::set<std::string> sources_below(const fs::path& tree, const std::vector<std::string>& directories) {
    std::error_code ignored;
    std::set<std::string> sources;
    for (const auto& directory : directories)
        for (const auto& entry : entries_below(tree / directory, ignored))
            if (entry.path().extension() == ".py" && entry.is_regular_file(ignored))
                sources.insert(entry.path().lexically_relative(tree).string());
    return sources;
}

Status compile_sources(const BuildContext& context, const std::set<std::string>& sources) {
    if (sources.empty()) return {};
    Stage stage("Compiling byte-code");
    std::string list;
    for (const auto& source : sources)
        list += (context.prefix / source).string() + '\0';
    const fs::path file = context.staging / "to-compile";
    TRY(write_file(file, list));
    auto command = context.inside(
        {context.python().string(), "-c", compile_program, file.string(), std::to_string(context.jobs)});
    TRY(BuildContext::run_successfully(std::move(command), stage, "cannot compile byte-code"));
    stage.finish(counted(sources.size(), "module"));
    return {};
}

} // namespace containerize::environments

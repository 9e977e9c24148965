#include "environments/byte_code.h"

#include "core/entries.h"
#include "core/filesystem.h"

namespace containerize::environments {

namespace {

/// Makes byte-code of the listed files in parallel and skips those that this Python version cannot compile.
///
/// Uses unchecked hashes, so that no run compares timestamps or recompiles; Python 3.6 does not support them
/// yet. Byte-code that is there already is valid if it is newer than the last change of its source (the
/// change time, because the modification time can be set). It only gets another header, in a new file,
/// because the old one may have more hard links. Before Python 3.11, byte-code depends on the seed of its
/// process's hashes, so it is always made again.
///
/// Forces the "fork" start method: the others, which Python 3.14 prefers, re-import the main program, and
/// `-c` has no file to import.
constexpr const char* compile_program = R"(
import marshal, os, py_compile, struct, sys

def reuse_byte_code(path):
    import importlib.util
    cached = importlib.util.cache_from_source(path)
    try:
        with open(cached, 'rb') as file:
            code = file.read()
            made = os.fstat(file.fileno())
    except OSError:
        return False
    with open(path, 'rb') as file:
        digest = importlib.util.source_hash(file.read())
        source = os.fstat(file.fileno())
    magic = importlib.util.MAGIC_NUMBER
    by_time = struct.pack('<LLL', 0, int(source.st_mtime) & 0xffffffff, source.st_size & 0xffffffff)
    by_hash = struct.pack('<L', 3) + digest
    is_newer = source.st_ctime_ns < made.st_mtime_ns
    if not (code.startswith(magic + by_time) and is_newer) and not code.startswith(magic + by_hash):
        return False
    try:
        marshal.loads(code[16:]) # a disk that was full may have cut it
    except (EOFError, TypeError, ValueError):
        return False
    os.unlink(cached)
    try:
        with os.fdopen(os.open(cached, os.O_WRONLY | os.O_CREAT | os.O_EXCL, made.st_mode & 0o777), 'wb') as file:
            file.write(magic + struct.pack('<L', 1) + digest + code[16:])
    except OSError:
        os.unlink(cached)
        raise
    return True

def make_byte_code(path):
    try:
        if not hasattr(py_compile, 'PycInvalidationMode'):
            py_compile.compile(path, doraise=True)
        elif sys.version_info < (3, 11) or not reuse_byte_code(path):
            py_compile.compile(path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except Exception as problem:
        print('%r: %r' % (path, problem))

def workers(jobs):
    try:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        return ProcessPoolExecutor(jobs, mp_context=get_context('fork'))
    except (ImportError, NotImplementedError, OSError, TypeError):
        return None # an old Python, or a machine without semaphores

if __name__ == '__main__':
    decode = getattr(os, 'fsdecode', str)
    with open(sys.argv[1], 'rb') as file:
        paths = [decode(path) for path in file.read().split(b'\0') if path]
    jobs = int(sys.argv[2])
    pool = workers(jobs) if jobs > 1 and len(paths) > 100 else None
    if pool:
        for done in pool.map(make_byte_code, paths, chunksize=64):
            pass
    else:
        for path in paths:
            make_byte_code(path)
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
    constexpr auto unreadable_too = fs::directory_options::skip_permission_denied;
    for (const auto& directory : directories)
        for (const auto& entry : entries_below(tree / directory, ignored, unreadable_too))
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

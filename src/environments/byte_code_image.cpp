#include "environments/byte_code_image.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "image/listing.h"
#include "util/in_parallel.h"
#include "util/log.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace containerize::environments {

namespace {

constexpr std::string_view modules = "site-packages/";
constexpr const char* directory_of_byte_code = "__pycache__";
/// Python takes minutes for larger ones, if it does not refuse them.
constexpr std::uint64_t largest_module = 64U << 20U;
/// Modules that are in memory at once.
constexpr std::size_t modules_at_once = 256;

Result<std::vector<image::ListedEntry>> modules_in(image::Reader& files) {
    std::vector<image::ListedEntry> found;
    std::set<std::string> without_byte_code; // directories in which byte-code's own cannot be made
    for (auto& entry : TRY(image::list_entries(files))) {
        if (!S_ISREG(entry.inode.mode) || !entry.path.starts_with(modules)) continue;
        const fs::path path = entry.path;
        if (path.filename() == directory_of_byte_code) without_byte_code.insert(path.parent_path());
        if (entry.path.ends_with(".py") && entry.inode.size <= largest_module)
            found.push_back(std::move(entry));
    }
    std::erase_if(found, [&](const auto& module) {
        return without_byte_code.contains(fs::path(module.path).parent_path());
    });
    return found;
}

/// Empty if it cannot be compiled.
Result<std::string> compiled(image::Reader& files, const image::ListedEntry& module,
                             ByteCodeWorkers& workers) {
    const auto text = TRY(image::content_of(files, module, largest_module));
    // Python replaces this path by the real one when it imports the module.
    auto made = workers.compile(module.path.substr(modules.size()), text);
    // This says nothing about the module, so no image may be kept.
    if (!made) return fail(std::move(made.error()));
    if (!made->reason.empty()) log::detail(module.path + ": " + made->reason);
    return std::move(made->pyc);
}

} // namespace

std::string path_of_byte_code(const fs::path& module, const std::string& cache_tag) {
    return module.parent_path() / directory_of_byte_code /
           (module.stem().string() + "." + cache_tag + ".pyc");
}

Status add_byte_code(image::Reader& files, ByteCodeWorkers& workers, unsigned jobs, image::Writer& writer) {
    const auto all = TRY(modules_in(files));
    for (std::size_t first = 0; first < all.size(); first += modules_at_once) {
        const auto some = std::span(all).subspan(first, std::min(modules_at_once, all.size() - first));
        std::vector<std::string> byte_code(some.size());
        const auto compile = [&](std::size_t i) -> Status {
            byte_code[i] = TRY(compiled(files, some[i], workers));
            return {};
        };
        TRY(in_parallel(jobs, some.size(), compile));
        for (std::size_t i = 0; i < some.size(); ++i) {
            if (byte_code[i].empty()) continue;
            TRY(writer.begin_file(path_of_byte_code(some[i].path, workers.cache_tag()),
                                  {.mode = 0644, .mtime = some[i].inode.mtime}));
            TRY(writer.append(std::as_bytes(std::span(byte_code[i]))));
            TRY(writer.end_file());
        }
    }
    return {};
}

} // namespace containerize::environments

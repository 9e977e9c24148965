#include "fuse/server_statistics.h"

#include <new>
#include <utility>

#include <linux/fuse.h>
#include <sys/mman.h>

#include <nlohmann/json.hpp>

namespace containerize::fuse {

namespace {

using nlohmann::json;

constexpr std::pair<std::uint32_t, const char*> names[] = {
    {FUSE_LOOKUP, "lookup"},   {FUSE_GETATTR, "getattr"},   {FUSE_READLINK, "readlink"},
    {FUSE_READ, "read"},       {FUSE_READDIR, "readdir"},   {FUSE_READDIRPLUS, "readdirplus"},
    {FUSE_IOCTL, "ioctl"},     {FUSE_GETXATTR, "getxattr"}, {FUSE_LISTXATTR, "listxattr"},
    {FUSE_STATFS, "statfs"},   {FUSE_FORGET, "forget"},     {FUSE_BATCH_FORGET, "forget"},
    {FUSE_OPENDIR, "opendir"},
};

const char* name_of(std::size_t kind) {
    for (const auto& [number, name] : names)
        if (number == kind) return name;
    return "other";
}

} // namespace

Result<std::shared_ptr<ServerStatistics>> make_shared_statistics() {
    void* memory =
        mmap(nullptr, sizeof(ServerStatistics), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail_errno("cannot allocate memory for statistics");
    return std::shared_ptr<ServerStatistics>(new (memory) ServerStatistics, [](ServerStatistics* statistics) {
        statistics->~ServerStatistics();
        munmap(statistics, sizeof *statistics);
    });
}

std::string to_json(const ServerStatistics& statistics) {
    json requests = json::object();
    for (std::size_t kind = 0; kind < statistics.requests.size(); ++kind)
        if (const std::uint64_t count = statistics.requests[kind]; count > 0) {
            auto& sum = requests[name_of(kind)];
            sum = (sum.is_null() ? 0 : sum.get<std::uint64_t>()) + count;
        }
    const auto& image = statistics.image;
    return json{{"requests", requests},
                {"reads", image.reads.load()},
                {"bytes_read", image.bytes_read.load()},
                {"blocks_wanted", image.blocks_wanted.load()},
                {"blocks_loaded", image.blocks_loaded.load()},
                {"prefetch",
                 {{"reads", image.prefetch_reads.load()},
                  {"bytes", image.prefetch_bytes.load()},
                  {"blocks_decompressed", image.prefetch_blocks.load()},
                  {"used", image.prefetch_used.load()},
                  {"dropped", image.prefetch_dropped.load()}}}}
        .dump();
}

} // namespace containerize::fuse

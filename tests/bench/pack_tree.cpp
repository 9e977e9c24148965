// Packs a tree with our writer, for tests/bench/pack.sh: pack_tree TREE IMAGE COMPRESSION BLOCK_SIZE JOBS
#include "image/writer.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    using namespace containerize;
    if (argc != 6) {
        std::fputs("usage: pack_tree TREE IMAGE COMPRESSION BLOCK_SIZE JOBS\n", stderr);
        return 2;
    }
    image::WriterOptions options;
    const auto compression = image::parse_compression(argv[3]);
    const auto block_size = image::parse_block_size(argv[4]);
    if (!compression || !block_size) return 2;
    options.compression = *compression;
    options.block_size = *block_size;
    options.jobs = static_cast<unsigned>(std::strtoul(argv[5], nullptr, 10));
    const auto written = image::write_tree(argv[1], argv[2], options, 022);
    if (!written) {
        std::fprintf(stderr, "%s\n", to_string(written.error()).c_str());
        return 1;
    }
    return 0;
}

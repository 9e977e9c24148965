#include "image/metadata.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace containerize::image {

namespace {

constexpr std::uint16_t stored_uncompressed = 0x8000;

std::uint16_t header_at(std::span<const std::byte> raw, std::size_t position) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(raw[position]) |
                                      std::to_integer<unsigned>(raw[position + 1]) << 8U);
}

} // namespace

MetadataTable::MetadataTable(std::vector<std::byte> raw, Decompressor& decompressor)
    : raw_(std::move(raw)), decompressor_(decompressor) {}

MetadataTable::~MetadataTable() {
    for (auto& block : blocks_)
        delete block.load(std::memory_order_relaxed);
}

std::expected<std::unique_ptr<MetadataTable>, int> MetadataTable::create(std::vector<std::byte> raw,
                                                                         Decompressor& decompressor) {
    auto table = std::unique_ptr<MetadataTable>(new MetadataTable(std::move(raw), decompressor));
    for (std::size_t position = 0; position < table->raw_.size();) {
        if (table->raw_.size() - position < 2) return std::unexpected(EIO);
        const std::size_t size = header_at(table->raw_, position) & ~stored_uncompressed;
        if (size == 0 || size > metadata_block_size || size > table->raw_.size() - position - 2)
            return std::unexpected(EIO);
        table->index_of_.emplace(static_cast<std::uint32_t>(position), table->starts_.size());
        table->starts_.push_back(static_cast<std::uint32_t>(position));
        position += 2 + size;
    }
    table->blocks_ = std::vector<std::atomic<const Block*>>(table->starts_.size());
    return table;
}

std::expected<const MetadataTable::Block*, int> MetadataTable::block(std::size_t index) const {
    if (index >= blocks_.size()) return std::unexpected(EIO);
    if (const Block* known = blocks_[index].load(std::memory_order_acquire)) return known;

    const std::size_t position = starts_[index];
    const std::uint16_t header = header_at(raw_, position);
    const auto stored = std::span(raw_).subspan(position + 2, header & ~stored_uncompressed);
    auto made = std::make_unique<Block>();
    if ((header & stored_uncompressed) != 0) {
        std::ranges::copy(stored, made->data.begin());
        made->size = stored.size();
    } else {
        auto written = decompressor_.decompress(stored, made->data);
        if (!written) return std::unexpected(written.error());
        made->size = *written;
    }
    // Two threads may decompress the same block at once: the first to store wins, the other's copy goes.
    const Block* expected = nullptr;
    if (blocks_[index].compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
        return made.release();
    return expected;
}

std::expected<MetadataTable::Cursor, int> MetadataTable::at(std::uint64_t start, std::size_t offset) const {
    if (start > raw_.size()) return std::unexpected(EIO);
    const auto found = index_of_.find(static_cast<std::uint32_t>(start));
    if (found == index_of_.end()) return std::unexpected(EIO);
    return Cursor(*this, found->second, offset);
}

std::expected<void, int> MetadataTable::Cursor::read(std::span<std::byte> out) {
    while (!out.empty()) {
        auto block = table_->block(block_);
        if (!block) return std::unexpected(block.error());
        if (offset_ > (*block)->size) return std::unexpected(EIO);
        const std::size_t count = std::min((*block)->size - offset_, out.size());
        std::memcpy(out.data(), (*block)->data.data() + offset_, count);
        out = out.subspan(count);
        offset_ += count;
        if (offset_ == (*block)->size) {
            ++block_;
            offset_ = 0;
        }
    }
    return {};
}

} // namespace containerize::image

#include "image/metadata.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace containerize::image {

namespace {

constexpr std::uint16_t table_stored_uncompressed = 0x8000;
constexpr std::size_t header_size = 2;

struct TableHeader {
    std::size_t size; ///< of what is stored after the header
    bool compressed;
};

/// Returns nullopt if `raw` has no whole block at `position`.
std::optional<TableHeader> header_at(std::span<const std::byte> raw, std::uint64_t position) {
    if (raw.size() < header_size || position > raw.size() - header_size) return std::nullopt;
    const auto field = static_cast<std::uint16_t>(std::to_integer<unsigned>(raw[position]) |
                                                  std::to_integer<unsigned>(raw[position + 1]) << 8U);
    const std::size_t size = field & ~table_stored_uncompressed;
    if (size == 0 || size > metadata_block_size || size > raw.size() - position - header_size)
        return std::nullopt;
    return TableHeader{.size = size, .compressed = (field & table_stored_uncompressed) == 0};
}

} // namespace

std::expected<void, int> read_block(std::span<const std::byte> raw, std::uint64_t& position,
                                    Decompressor& decompressor, MetadataBlock& out) {
    const auto header = header_at(raw, position);
    if (!header) return std::unexpected(EIO);
    const auto stored = raw.subspan(position + header_size, header->size);
    position += header_size + header->size;
    out.size = stored.size();
    if (header->compressed)
        out.size = TRY(decompressor.decompress(stored, out.data));
    else
        std::ranges::copy(stored, out.data.begin());
    return {};
}

MetadataTable::MetadataTable(std::vector<std::byte> raw, Decompressor& decompressor)
    : raw_(std::move(raw)), decompressor_(decompressor) {}

MetadataTable::~MetadataTable() {
    for (auto& block : blocks_)
        delete block.load(std::memory_order_relaxed);
}

std::expected<std::unique_ptr<MetadataTable>, int> MetadataTable::create(std::vector<std::byte> raw,
                                                                         Decompressor& decompressor) {
    auto table = std::unique_ptr<MetadataTable>(new MetadataTable(std::move(raw), decompressor));
    for (std::uint64_t position = 0; position < table->raw_.size();) {
        const auto header = header_at(table->raw_, position);
        if (!header || table->starts_.size() == most_metadata_blocks) return std::unexpected(EIO);
        table->starts_.push_back(position);
        position += header_size + header->size;
    }
    table->blocks_ = std::vector<std::atomic<const MetadataBlock*>>(table->starts_.size());
    return table;
}

std::expected<const MetadataBlock*, int> MetadataTable::block(std::size_t index) const {
    if (index >= blocks_.size()) return std::unexpected(EIO);
    if (const MetadataBlock* known = blocks_[index].load(std::memory_order_acquire)) return known;

    auto made = std::make_unique<MetadataBlock>();
    auto position = starts_[index];
    TRY(read_block(raw_, position, decompressor_, *made));
    // If two threads decompress the same block, the first result is kept and the other freed.
    const MetadataBlock* expected = nullptr;
    if (blocks_[index].compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
        return made.release();
    return expected;
}

std::expected<MetadataTable::Cursor, int> MetadataTable::at(std::uint64_t start, std::size_t offset) const {
    const auto found = std::ranges::lower_bound(starts_, start);
    if (found == starts_.end() || *found != start) return std::unexpected(EIO);
    return Cursor(*this, static_cast<std::size_t>(found - starts_.begin()), offset);
}

std::expected<std::span<const std::byte>, int> MetadataTable::Cursor::take(std::size_t size) {
    auto block = table_->block(block_);
    // The end of a block is the same position as the start of the next.
    if (block && offset_ == (*block)->size) {
        offset_ = 0;
        block = table_->block(++block_);
    }
    if (!block) return std::unexpected(block.error());
    if (offset_ > (*block)->size) return std::unexpected(EIO);
    const auto bytes = std::span((*block)->data).subspan(offset_, std::min((*block)->size - offset_, size));
    offset_ += bytes.size();
    if (offset_ == (*block)->size) {
        ++block_;
        offset_ = 0;
    }
    return bytes;
}

std::expected<void, int> MetadataTable::Cursor::read(std::span<std::byte> out) {
    while (!out.empty()) {
        const auto bytes = TRY(take(out.size()));
        std::ranges::copy(bytes, out.begin());
        out = out.subspan(bytes.size());
    }
    return {};
}

std::expected<void, int> MetadataTable::Cursor::skip(std::size_t size) {
    while (size > 0) {
        const auto bytes = TRY(take(size));
        size -= bytes.size();
    }
    return {};
}

} // namespace containerize::image

#include "image/prefetch.h"

#include "core/thread.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <malloc.h>
#include <unistd.h>

namespace containerize::image {

namespace {

/// Runs never need blocks in exactly the recorded order: those less than this far behind may still be wanted.
constexpr std::size_t slack = 256;
/// The memory left for the node's programs must be at least this many times our own limit.
constexpr std::uint64_t reserve = 4;
/// How often to look for an idle core.
constexpr auto pause = std::chrono::milliseconds(5);
/// The run counts as started when everything was used, and nothing was for this long.
constexpr auto settled = std::chrono::seconds(5);

} // namespace

Prefetch::Prefetch(std::vector<Part> parts, PrefetchOptions options, std::shared_ptr<Statistics> statistics)
    : parts_(std::move(parts)), options_(std::move(options)), statistics_(std::move(statistics)),
      numbers_(parts_.size()), places_(parts_.size()) {
    for (std::size_t part = 0; part < parts_.size(); ++part)
        plan(part, std::move(parts_[part].blocks), options_.shape);
}

void Prefetch::start() {
    const bool all = if_threads_are_left([this] {
        threads_.emplace_back([this](const std::stop_token& stop) { watch(stop); });
        for (unsigned i = 0; i < options_.depth; ++i)
            threads_.emplace_back([this] { while_memory_lasts(&Prefetch::read_ahead); });
        for (unsigned i = 0; i < options_.decompressors; ++i)
            threads_.emplace_back([this] { while_memory_lasts(&Prefetch::decompress_ahead); });
    });
    if (all || threads_.size() > 1) return;
    const Lock lock(mutex_);
    finish(); // no thread reads ahead
}

Prefetch::~Prefetch() {
    const Lock lock(mutex_);
    finish();
}

void Prefetch::plan(std::size_t part, std::vector<ProfileBlock> blocks, const RequestShape& shape) {
    const std::size_t before = blocks_.size();
    for (const auto& extent : requests_for(blocks, shape)) {
        places_[part].emplace(extent.begin, pieces_.size());
        pieces_.push_back({.extent = extent, .part = part});
        pieces_.back().extent.first += before;
    }
    for (const auto& block : blocks) {
        const std::size_t number = blocks_.size();
        numbers_[part].emplace(block.start, number);
        blocks_.push_back({.place = block, .part = part});
        for (const auto piece : pieces_of(blocks_.back())) {
            pieces_[piece].blocks.push_back(number);
            ++pieces_[piece].left;
        }
    }
}

std::optional<std::size_t> Prefetch::piece_at(std::size_t part, std::uint64_t offset) const {
    const auto after = places_[part].upper_bound(offset);
    if (after == places_[part].begin()) return std::nullopt;
    const auto number = std::prev(after)->second;
    if (offset >= pieces_[number].extent.end) return std::nullopt;
    return number;
}

std::vector<std::size_t> Prefetch::pieces_of(const Block& block) const {
    std::vector<std::size_t> found;
    for (auto at = block.place.start; at < block.place.end();) {
        const auto piece = piece_at(block.part, at);
        if (!piece) break;
        found.push_back(*piece);
        at = pieces_[*piece].extent.end;
    }
    return found;
}

std::optional<std::size_t> Prefetch::find(std::size_t part, const ProfileBlock& block) const {
    const auto found = numbers_[part].find(block.start);
    if (found == numbers_[part].end() || blocks_[found->second].place != block) return std::nullopt;
    return found->second;
}

bool Prefetch::is_behind(std::size_t block) const {
    return block + slack < furthest_;
}

void Prefetch::read(Piece& piece, Lock& lock) {
    const auto size = piece.extent.end - piece.extent.begin;
    make_room(size);                                               // even without room: a request may need it
    auto data = std::make_shared_for_overwrite<std::byte[]>(size); // may throw: nothing has changed yet
    piece.state = State::reading;
    held_ += size;
    lock.unlock();
    const auto done = parts_[piece.part].source->read(piece.extent.begin, {data.get(), size});
    lock.lock();
    if (done) {
        statistics_->prefetch_reads.fetch_add(1, std::memory_order_relaxed);
        statistics_->prefetch_bytes.fetch_add(size, std::memory_order_relaxed);
        piece.was_read = true;
    }
    piece.data = std::move(data);
    piece.state = State::ready;
    if (!done || stopped_) release(piece);
    changed_.notify_all();
}

bool Prefetch::is_ready(Piece& piece, Lock& lock) {
    while (piece.state == State::reading)
        changed_.wait(lock);
    if (piece.state == State::waiting) read(piece, lock);
    return piece.state == State::ready;
}

void Prefetch::release(Piece& piece) {
    if (piece.state == State::ready) held_ -= piece.extent.end - piece.extent.begin;
    piece.data.reset();
    piece.state = State::gone;
}

// Drops pieces that are decompressed, or that a run other than the recorded one has passed, to make room for
// what comes next.
void Prefetch::make_room(std::size_t size) {
    const auto is_stale = [&](const Piece& piece) {
        return std::ranges::all_of(piece.blocks, [&](std::size_t block) { return is_behind(block); });
    };
    for (auto& piece : pieces_) {
        if (has_room(size)) return;
        if (piece.state == State::ready && (piece.left == 0 || is_stale(piece))) release(piece);
    }
}

bool Prefetch::has_room(std::size_t size) const {
    return held_ == 0 || held_ + size <= options_.memory;
}

std::optional<Slice> Prefetch::range(std::size_t part, std::uint64_t offset, std::size_t size) {
    const auto end = offset + size;
    if (stopped_ || end <= offset) return std::nullopt; // an image may name any offset
    Lock lock(mutex_);
    std::shared_ptr<std::vector<std::byte>> joined; // for a block that two requests share
    for (auto at = offset; at < end;) {
        const auto number = piece_at(part, at);
        if (!number) return std::nullopt;
        auto& piece = pieces_[*number];
        if (!is_ready(piece, lock)) return std::nullopt;
        const auto count = std::min(end, piece.extent.end) - at;
        const auto bytes = std::span<const std::byte>(piece.data.get() + (at - piece.extent.begin), count);
        if (count == size) return Slice{.pin = piece.data, .bytes = bytes};
        if (!joined) joined = std::make_shared<std::vector<std::byte>>(size);
        std::memcpy(joined->data() + (at - offset), bytes.data(), count);
        at += count;
    }
    return Slice{.pin = joined, .bytes = *joined};
}

void Prefetch::wanted(std::size_t part, const ProfileBlock& block) {
    if (stopped_) return;
    const Lock lock(mutex_);
    const auto number = find(part, block);
    if (!number) return;
    furthest_ = std::max(furthest_, *number);
    if (!std::exchange(blocks_[*number].used, true)) {
        last_use_ = std::chrono::steady_clock::now();
        statistics_->prefetch_used.fetch_add(block.stored(), std::memory_order_relaxed);
    }
    const auto before = ahead_.size();
    ahead_.erase(*number);
    while (!ahead_.empty() && is_behind(*ahead_.begin()))
        ahead_.erase(ahead_.begin());
    if (ahead_.size() != before) changed_.notify_all();
}

void Prefetch::loaded(std::size_t part, const ProfileBlock& block) {
    if (stopped_) return;
    const Lock lock(mutex_);
    const auto number = find(part, block);
    if (!number || std::exchange(blocks_[*number].loaded, true)) return;
    // The pieces stay while there is room: a block is wanted in parts, and may leave the reader's cache in
    // between.
    for (const auto piece : pieces_of(blocks_[*number]))
        --pieces_[piece].left;
    changed_.notify_all();
}

// Without memory nothing is read ahead: programs get what there is.
void Prefetch::while_memory_lasts(void (Prefetch::*work)()) {
    try {
        (this->*work)();
    } catch (const std::bad_alloc&) {
        const Lock lock(mutex_);
        finish();
    }
}

void Prefetch::read_ahead() {
    Lock lock(mutex_);
    while (!stopped_ && next_piece_ < pieces_.size()) {
        auto& piece = pieces_[next_piece_];
        const auto size = piece.extent.end - piece.extent.begin;
        if (piece.state == State::waiting) make_room(size);
        if (piece.state != State::waiting || (!has_room(size) && is_behind(piece.extent.first))) {
            ++next_piece_; // a request that still needs the piece reads it itself
        } else if (has_room(size)) {
            ++next_piece_;
            read(piece, lock);
        } else {
            changed_.wait(lock);
        }
    }
}

void Prefetch::decompress_ahead() {
    Lock lock(mutex_);
    while (!stopped_ && next_block_ < blocks_.size()) {
        const std::size_t number = next_block_;
        const auto& block = blocks_[number];
        const auto& part = parts_[block.part];
        const auto pieces = pieces_of(block);
        const auto is = [&](State state) {
            return std::ranges::any_of(pieces,
                                       [&](std::size_t piece) { return pieces_[piece].state == state; });
        };
        if (block.loaded || block.used || is_behind(number) || is(State::gone)) {
            ++next_block_;
        } else if (is(State::waiting) || is(State::reading) ||
                   (ahead_.size() + 1) * part.block_size > options_.ahead) {
            changed_.wait(lock);
        } else if (options_.idle_core && !options_.idle_core()) {
            changed_.wait_for(lock, pause);
        } else {
            ++next_block_;
            ahead_.insert(number);
            const auto place = block.place;
            lock.unlock();
            part.load(place);
            statistics_->prefetch_blocks.fetch_add(1, std::memory_order_relaxed);
            lock.lock();
        }
    }
}

void Prefetch::watch(const std::stop_token& stop) {
    Lock lock(mutex_);
    const auto is_over = [this] {
        const auto unused = std::chrono::steady_clock::now() - last_use_;
        return unused >= options_.patience ||
               (unused >= settled && std::ranges::all_of(blocks_, &Block::used));
    };
    while (!stopped_ && !is_over()) {
        watched_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
        if (stop.stop_requested()) break;
        lock.unlock();
        const auto left = options_.memory_left ? options_.memory_left() : ~std::uint64_t{0};
        lock.lock();
        if (left < reserve * options_.memory) break;
    }
    finish();
    lock.unlock();
    malloc_trim(0); // returns the memory to the system: the server lives on for a long time
}

void Prefetch::finish() {
    if (stopped_.exchange(true)) return;
    for (const auto& block : blocks_) {
        const auto pieces = pieces_of(block);
        const auto was_read = [&](std::size_t piece) { return pieces_[piece].was_read; };
        if (!block.used && !pieces.empty() && std::ranges::all_of(pieces, was_read))
            statistics_->prefetch_dropped.fetch_add(block.place.stored(), std::memory_order_relaxed);
    }
    for (auto& piece : pieces_)
        if (piece.state != State::reading) release(piece);
    changed_.notify_all();
}

} // namespace containerize::image

// A bounded cache that loads each value at most once at a time, and holds no lock while loading.
#pragma once

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace containerize::image {

/// Evicts the least recently used values when it holds more than `capacity` bytes (by Value::bytes()). A
/// value in use lives on after its eviction. Threads wait for a value that another one is loading: ranks that
/// start together ask for the same blocks, and each block is decompressed once. Errors are errno values, and
/// are not cached.
template<class Value>
class LoadingCache {
public:
    using Pointer = std::shared_ptr<const Value>;
    using Loaded = std::expected<Pointer, int>;

    explicit LoadingCache(std::size_t capacity) : shard_capacity_(capacity / shard_count) {}

    template<class Load>
    Loaded get(std::uint64_t key, Load&& load) {
        Shard& shard = shards_[shard_of(key)];
        std::unique_lock lock(shard.mutex);
        for (;;) {
            const auto found = shard.entries.find(key);
            if (found == shard.entries.end()) break;
            Entry& entry = found->second;
            if (entry.value) {
                shard.order.splice(shard.order.begin(), shard.order, entry.position);
                return entry.value;
            }
            shard.loaded.wait(lock);
        }
        shard.order.push_front(key);
        shard.entries.emplace(key, Entry{nullptr, shard.order.begin()});
        lock.unlock();

        const Loaded loaded = load_unless_out_of_memory(std::forward<Load>(load));

        lock.lock();
        const auto mine = shard.entries.find(key);
        if (loaded) {
            mine->second.value = *loaded;
            shard.bytes += (*loaded)->bytes();
            evict(shard, shard_capacity_, key);
        } else {
            shard.order.erase(mine->second.position);
            shard.entries.erase(mine);
        }
        lock.unlock();
        shard.loaded.notify_all();
        return loaded;
    }

    /// Removes a value that turned out to be wrong.
    void drop(std::uint64_t key, const Pointer& value) {
        Shard& shard = shards_[shard_of(key)];
        const std::lock_guard lock(shard.mutex);
        const auto found = shard.entries.find(key);
        if (found == shard.entries.end() || found->second.value != value) return;
        shard.bytes -= value->bytes();
        shard.order.erase(found->second.position);
        shard.entries.erase(found);
    }

    /// Removes all values that are loaded. Returns their size in bytes.
    std::size_t clear() {
        std::size_t bytes = 0;
        for (Shard& shard : shards_) {
            const std::lock_guard lock(shard.mutex);
            bytes += shard.bytes;
            evict(shard, 0, std::nullopt);
        }
        return bytes;
    }

private:
    static constexpr std::size_t shard_count = 8;

    struct Entry {
        Pointer value; ///< empty while loading
        std::list<std::uint64_t>::iterator position;
    };
    struct Shard {
        std::mutex mutex;
        std::condition_variable loaded;
        std::unordered_map<std::uint64_t, Entry> entries;
        std::list<std::uint64_t> order; ///< most recently used first
        std::size_t bytes = 0;
    };

    // An exception would let other threads wait for ever.
    template<class Load>
    static Loaded load_unless_out_of_memory(Load&& load) {
        try {
            return std::forward<Load>(load)();
        } catch (const std::bad_alloc&) {
            return std::unexpected(ENOMEM);
        }
    }

    static std::size_t shard_of(std::uint64_t key) {
        return ((key * 0x9E3779B97F4A7C15ULL) >> 60U) % shard_count;
    }

    static void evict(Shard& shard, std::size_t capacity, std::optional<std::uint64_t> keep) {
        auto position = shard.order.end();
        while (shard.bytes > capacity && position != shard.order.begin()) {
            --position;
            const auto entry = shard.entries.find(*position);
            if (!entry->second.value || *position == keep) continue;
            shard.bytes -= entry->second.value->bytes();
            shard.entries.erase(entry);
            position = shard.order.erase(position);
        }
    }

    std::size_t shard_capacity_;
    std::array<Shard, shard_count> shards_;
};

} // namespace containerize::image

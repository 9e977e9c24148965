#include "base/elf.h"

#include "core/filesystem.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <elf.h>

namespace containerize::base {

namespace {

constexpr std::uint64_t largest_file = 512U << 20U;
// Far above real files: more would be an attempt to use up time or memory.
constexpr std::size_t most_segments = 64;
constexpr std::size_t most_dynamic_entries = 4096;
constexpr std::size_t longest_text = 4096;

#if defined(__x86_64__)
constexpr Elf64_Half this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half this_machine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr Elf64_Half this_machine = EM_PPC64;
#elif defined(__riscv)
constexpr Elf64_Half this_machine = EM_RISCV;
#else
constexpr Elf64_Half this_machine = EM_S390;
#endif
constexpr unsigned char this_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

/// The structure at a position in the file; nullopt if the file is too short.
template<class Value>
std::optional<Value> value_at(std::string_view bytes, std::uint64_t position) {
    if (position > bytes.size() || bytes.size() - position < sizeof(Value)) return std::nullopt;
    Value value;
    std::memcpy(&value, bytes.data() + position, sizeof value);
    return value;
}

std::string text_at(std::string_view bytes, std::uint64_t position) {
    if (position >= bytes.size()) return {};
    const auto rest = bytes.substr(position, longest_text);
    return std::string(rest.substr(0, rest.find('\0')));
}

class Elf {
public:
    Elf(std::string_view bytes, const fs::path& file) : bytes_(bytes), file_(file) {}

    std::optional<ElfNeeds> needs() {
        const auto header = value_at<Elf64_Ehdr>(bytes_, 0);
        if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
            header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != this_order ||
            header->e_machine != this_machine || header->e_phnum > most_segments)
            return std::nullopt;
        std::optional<Elf64_Phdr> dynamic;
        for (unsigned i = 0; i < header->e_phnum; ++i) {
            const auto segment = value_at<Elf64_Phdr>(bytes_, header->e_phoff + i * sizeof(Elf64_Phdr));
            if (!segment) return std::nullopt;
            if (segment->p_type == PT_LOAD) loads_.push_back(*segment);
            if (segment->p_type == PT_DYNAMIC) dynamic = segment;
            if (segment->p_type == PT_INTERP) needs_.interpreter = text_at(bytes_, segment->p_offset);
        }
        if (dynamic) read_dynamic(*dynamic);
        return needs_;
    }

private:
    [[nodiscard]] std::uint64_t file_offset(std::uint64_t address) const {
        for (const auto& load : loads_)
            if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz)
                return address - load.p_vaddr + load.p_offset;
        return bytes_.size();
    }

    void read_dynamic(const Elf64_Phdr& segment) {
        std::uint64_t strings = bytes_.size();
        std::vector<Elf64_Dyn> entries;
        const auto count =
            std::min<std::uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), most_dynamic_entries);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto entry = value_at<Elf64_Dyn>(bytes_, segment.p_offset + i * sizeof(Elf64_Dyn));
            if (!entry || entry->d_tag == DT_NULL) break;
            if (entry->d_tag == DT_STRTAB) strings = file_offset(entry->d_un.d_ptr);
            entries.push_back(*entry);
        }
        for (const auto& entry : entries) {
            const auto text = [&] { return text_at(bytes_, strings + entry.d_un.d_val); };
            if (entry.d_tag == DT_NEEDED) needs_.libraries.push_back(text());
            if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) add_run_path(text());
        }
    }

    void add_run_path(std::string_view list) {
        constexpr std::string_view origin = "$ORIGIN";
        for (std::size_t start = 0; start <= list.size();) {
            const auto end = std::min(list.find(':', start), list.size());
            std::string directory(list.substr(start, end - start));
            start = end + 1;
            if (const auto at = directory.find(origin); at != std::string::npos)
                directory.replace(at, origin.size(), file_.parent_path().string());
            if (directory.starts_with('/')) needs_.run_path.push_back(std::move(directory));
        }
    }

    std::string_view bytes_;
    const fs::path& file_;
    std::vector<Elf64_Phdr> loads_;
    ElfNeeds needs_;
};

} // namespace

std::optional<ElfNeeds> read_elf(const fs::path& file) {
    const auto bytes = read_file(file, largest_file);
    if (!bytes) return std::nullopt;
    return Elf(*bytes, file).needs();
}

// glibc's dl-cache.h: a header of 48 bytes, entries of 24, then the names that they point to.
std::map<std::string, fs::path> parse_loader_cache(std::string_view bytes) {
    constexpr std::string_view magic = "glibc-ld.so.cache1.1";
    constexpr std::size_t header_size = 48;
    constexpr std::size_t entry_size = 24;
    std::map<std::string, fs::path> found;
    // Older systems have a cache in the older format before it.
    const auto start = bytes.find(magic);
    if (start == bytes.npos) return found;
    bytes.remove_prefix(start);
    const auto count = value_at<std::uint32_t>(bytes, magic.size());
    for (std::uint64_t i = 0; count && i < *count; ++i) {
        const auto at = header_size + i * entry_size;
        const auto flags = value_at<std::int32_t>(bytes, at);
        const auto name = value_at<std::uint32_t>(bytes, at + 4);
        const auto path = value_at<std::uint32_t>(bytes, at + 8);
        const auto processors = value_at<std::uint64_t>(bytes, at + 16);
        if (!flags || !name || !path || !processors) break;
        if (*processors == 0) found.try_emplace(text_at(bytes, *name), text_at(bytes, *path));
    }
    return found;
}

} // namespace containerize::base

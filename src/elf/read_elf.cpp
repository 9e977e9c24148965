#include "elf/read_elf.h"

#include "core/text.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace containerize::elf {

using image::TreeView;

namespace {

// Far above real files. Limits time and memory for hostile ones.
constexpr std::size_t most_segments = 64;
constexpr std::size_t most_dynamic_bytes = 64U << 10U;
constexpr std::size_t most_version_bytes = 256U << 10U;
constexpr std::size_t most_string_bytes = 16U << 20U;
constexpr std::size_t most_versions = 4096;
constexpr std::size_t longest_string = 4096;
constexpr unsigned char this_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

template<class T>
std::optional<T> load(std::string_view bytes, std::size_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::string text_at(std::string_view bytes, std::size_t offset) {
    if (offset >= bytes.size()) return {};
    const auto rest = bytes.substr(offset, longest_string);
    return std::string(rest.substr(0, rest.find('\0')));
}

/// Follows the file's offsets and checks each before use.
class Parser {
public:
    Parser(const TreeView& tree, const std::string& path) : tree_(tree), path_(path) {}

    Result<Elf> parse() {
        TRY(read_segments());
        TRY(read_dynamic());
        if (!read_needed_versions() || !read_defined_versions()) return bad("its version table is damaged");
        return std::move(elf_);
    }

private:
    [[nodiscard]] std::unexpected<Error> bad(std::string why) const {
        return fail({.what = "cannot use the library", .why = std::move(why), .where = path_});
    }

    Status read_segments() {
        const auto header = load<Elf64_Ehdr>(tree_.read(path_, 0, sizeof(Elf64_Ehdr)), 0);
        if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
            return bad("it is not an ELF program or library");
        if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != this_order)
            return bad("it is not for a 64-bit machine with this byte order");
        if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > most_segments)
            return bad("its segment table is damaged");
        elf_.machine = header->e_machine;
        const auto table = tree_.read(path_, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
        for (std::size_t i = 0; i < header->e_phnum; ++i) {
            const auto segment = load<Elf64_Phdr>(table, i * sizeof(Elf64_Phdr));
            if (!segment) return bad("its segment table is truncated");
            segments_.push_back(*segment);
            if (segment->p_type == PT_INTERP)
                elf_.interpreter = text_at(tree_.read(path_, segment->p_offset, longest_string), 0);
        }
        return {};
    }

    Status read_dynamic() {
        const auto segment = std::ranges::find(segments_, std::uint32_t{PT_DYNAMIC}, &Elf64_Phdr::p_type);
        if (segment == segments_.end()) return {}; // statically linked
        const auto table = tree_.read(path_, segment->p_offset,
                                      std::min<std::size_t>(segment->p_filesz, most_dynamic_bytes));
        std::vector<std::uint64_t> needed;
        std::optional<std::uint64_t> soname, run_path;
        std::uint64_t strings = 0, string_bytes = 0;
        for (std::size_t at = 0;; at += sizeof(Elf64_Dyn)) {
            const auto entry = load<Elf64_Dyn>(table, at);
            if (!entry || entry->d_tag == DT_NULL) break;
            const auto value = entry->d_un.d_val;
            switch (entry->d_tag) {
            case DT_STRTAB:
                strings = value;
                break;
            case DT_STRSZ:
                string_bytes = value;
                break;
            case DT_SONAME:
                soname = value;
                break;
            case DT_NEEDED:
                needed.push_back(value);
                break;
            case DT_RPATH:
                if (!run_path) run_path = value;
                break;
            case DT_RUNPATH: // the dynamic linker then ignores DT_RPATH
                run_path = value;
                break;
            case DT_VERNEED:
                needed_versions_ = value;
                break;
            case DT_VERDEF:
                defined_versions_ = value;
                break;
            default:
                break;
            }
        }
        strings_ = at_address(strings, std::min<std::size_t>(string_bytes, most_string_bytes));
        if (soname) elf_.soname = string(*soname);
        for (const auto offset : needed)
            elf_.needed.push_back(string(offset));
        const auto directories = run_path ? string(*run_path) : std::string();
        for (const auto directory : split(directories, ':'))
            if (!directory.empty()) elf_.run_path.emplace_back(directory);
        return {};
    }

    /// The bytes at a virtual address, limited to what the file contains of its segment.
    [[nodiscard]] std::string at_address(std::uint64_t address, std::size_t size) const {
        for (const auto& segment : segments_) {
            if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
            const auto within = address - segment.p_vaddr;
            if (within >= segment.p_filesz) continue;
            return tree_.read(path_, segment.p_offset + within,
                              std::min<std::size_t>(size, segment.p_filesz - within));
        }
        return {};
    }

    [[nodiscard]] std::string string(std::uint64_t offset) const { return text_at(strings_, offset); }

    bool read_needed_versions() {
        if (needed_versions_ == 0) return true;
        const auto table = at_address(needed_versions_, most_version_bytes);
        for (std::size_t at = 0;;) {
            const auto library = load<Elf64_Verneed>(table, at);
            if (!library) return false;
            std::size_t version_at = at + library->vn_aux;
            for (unsigned i = 0; i < library->vn_cnt; ++i) {
                const auto version = load<Elf64_Vernaux>(table, version_at);
                if (!version || elf_.needed_versions.size() == most_versions) return false;
                elf_.needed_versions.push_back(
                    {.library = string(library->vn_file), .name = string(version->vna_name)});
                version_at += version->vna_next;
            }
            if (library->vn_next == 0) return true;
            at += library->vn_next;
        }
    }

    bool read_defined_versions() {
        if (defined_versions_ == 0) return true;
        const auto table = at_address(defined_versions_, most_version_bytes);
        for (std::size_t at = 0;;) {
            const auto version = load<Elf64_Verdef>(table, at);
            if (!version || elf_.defined_versions.size() == most_versions) return false;
            const auto name = load<Elf64_Verdaux>(table, at + version->vd_aux);
            if (!name) return false;
            elf_.defined_versions.push_back(string(name->vda_name));
            if (version->vd_next == 0) return true;
            at += version->vd_next;
        }
    }

    const TreeView& tree_;
    const std::string& path_;
    Elf elf_;
    std::vector<Elf64_Phdr> segments_;
    std::string strings_;
    std::uint64_t needed_versions_ = 0, defined_versions_ = 0; ///< virtual addresses; 0 if there is none
};

} // namespace

Result<Elf> read_elf(const TreeView& tree, const std::string& path) {
    return Parser(tree, path).parse();
}

} // namespace containerize::elf

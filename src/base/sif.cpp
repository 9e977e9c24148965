#include "base/sif.h"

#include "core/fd.h"
#include "core/open_file.h"
#include "core/read_write.h"
#include "core/text.h"
#include "core/variables.h"

#include <array>
#include <cstring>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::base {

namespace {

// All numbers are little-endian, as on every machine that this runs on.
constexpr std::size_t header_size = 128;
constexpr std::size_t magic_at = 32, architecture_at = 45, count_at = 88, table_at = 96, table_size_at = 104;
constexpr std::string_view magic = "SIF_MAGIC";
constexpr std::size_t descriptor_size = 585;
constexpr std::size_t used_at = 4, data_at = 17, data_size_at = 25, name_at = 73, extra_at = 201;
constexpr std::size_t name_size = 128;
constexpr std::uint64_t most_descriptors = 4096;

constexpr std::int32_t type_partition = 0x4004;
constexpr std::int32_t type_json = 0x4006;
constexpr std::int32_t filesystem_squashfs = 1, filesystem_encrypted = 5;
constexpr std::int32_t partition_primary = 2;

class File {
public:
    File(std::filesystem::path path, Fd file) : path_(std::move(path)), file_(std::move(file)) {
        struct stat info {};
        if (fstat(file_.get(), &info) == 0) size_ = static_cast<std::uint64_t>(info.st_size);
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t size) const {
        return offset <= size_ && size <= size_ - offset;
    }
    [[nodiscard]] std::unexpected<Error> bad(std::string why) const {
        return fail_input("cannot use the .sif file", std::move(why), path_.string());
    }
    [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const {
        if (!holds(offset, size)) return bad("it is truncated");
        std::string bytes(size, '\0');
        const auto got = read_all_at(file_.get(), bytes.data(), size, static_cast<off_t>(offset));
        if (got != static_cast<ssize_t>(size)) return fail_errno("cannot read the .sif file", path_.string());
        return bytes;
    }

private:
    std::filesystem::path path_;
    Fd file_;
    std::uint64_t size_ = 0;
};

template<class Number>
Number number_at(std::string_view bytes, std::size_t position) {
    Number number{};
    std::memcpy(&number, bytes.data() + position, sizeof number);
    return number;
}

std::string text_at(std::string_view bytes, std::size_t position, std::size_t size) {
    const auto field = bytes.substr(position, size);
    return std::string(field.substr(0, field.find('\0')));
}

/// The architecture for SIF's two-digit code; empty for an unknown one.
std::string architecture_name(std::string_view code) {
    static constexpr std::array<std::string_view, 13> names = {
        "",     "386",    "amd64",  "arm",      "arm64", "ppc64",  "ppc64le",
        "mips", "mipsle", "mips64", "mips64le", "s390x", "riscv64"};
    const auto number = to_number<std::size_t>(code).value_or(0);
    return std::string(number < names.size() ? names[number] : "");
}

struct SifDescriptor {
    std::int32_t type = 0;
    std::uint64_t offset = 0, size = 0;
    std::string name;
    std::int32_t filesystem = 0, partition = 0;
    std::string architecture;
};

SifDescriptor descriptor_at(std::string_view bytes) {
    return {.type = number_at<std::int32_t>(bytes, 0),
            .offset = number_at<std::uint64_t>(bytes, data_at),
            .size = number_at<std::uint64_t>(bytes, data_size_at),
            .name = text_at(bytes, name_at, name_size),
            .filesystem = number_at<std::int32_t>(bytes, extra_at),
            .partition = number_at<std::int32_t>(bytes, extra_at + 4),
            .architecture = text_at(bytes, extra_at + 8, 3)};
}

Result<std::string> descriptor_table(const File& file) {
    auto header = TRY(file.read(0, header_size));
    if (std::string_view(header).substr(magic_at, magic.size()) != magic)
        return file.bad("it is not a SIF image");
    const auto count = number_at<std::uint64_t>(header, count_at);
    const auto offset = number_at<std::uint64_t>(header, table_at);
    const auto size = number_at<std::uint64_t>(header, table_size_at);
    if (count > most_descriptors || size < count * descriptor_size)
        return file.bad("its descriptor table is invalid");
    return file.read(offset, count * descriptor_size);
}

} // namespace

Result<SifImage> read_sif(const std::filesystem::path& path) {
    auto opened = TRY(open_regular(path));
    const File file(path, std::move(opened));
    auto table = TRY(descriptor_table(file));
    SifImage image;
    for (std::string_view rest = table; !rest.empty(); rest.remove_prefix(descriptor_size)) {
        if (rest[used_at] == 0) continue;
        const auto descriptor = descriptor_at(rest);
        // Only the first one counts: thousands of descriptors could name the same large text.
        if (descriptor.type == type_json && descriptor.name == "oci-config" && !image.config &&
            descriptor.size <= largest_config) {
            auto text = TRY(file.read(descriptor.offset, descriptor.size));
            image.config = TRY(parse_config(text, path.string()));
        }
        if (descriptor.type != type_partition || descriptor.partition != partition_primary) continue;
        if (descriptor.filesystem == filesystem_encrypted)
            return file.bad("its root filesystem is encrypted");
        if (descriptor.filesystem != filesystem_squashfs)
            return file.bad("its root filesystem is not squashfs");
        if (!file.holds(descriptor.offset, descriptor.size)) return file.bad("it is truncated");
        image.offset = descriptor.offset;
        image.size = descriptor.size;
        image.architecture = architecture_name(descriptor.architecture);
    }
    if (image.size == 0) return file.bad("it has no root filesystem (no primary partition)");
    return image;
}

// Apptainer writes: export PATH="/usr/bin"   and   export LANG="${LANG:-"C.UTF-8"}"
std::vector<std::string> exported_variables(std::string_view script) {
    constexpr std::string_view command = "export ";
    std::vector<std::string> found;
    for (const auto line : split(script, '\n')) {
        const auto equals = line.find('=');
        if (!line.starts_with(command) || equals == line.npos || equals == command.size()) continue;
        const auto name = line.substr(command.size(), equals - command.size());
        auto value = line.substr(equals + 1);
        const auto unquote = [&value] {
            const bool quoted = value.size() >= 2 && value.starts_with('"') && value.ends_with('"');
            if (quoted) value = value.substr(1, value.size() - 2);
            return quoted;
        };
        const bool quoted = unquote();
        const auto with_default = "${" + std::string(name) + ":-";
        if (value.starts_with(with_default) && value.ends_with('}')) {
            value = value.substr(with_default.size(), value.size() - with_default.size() - 1);
            unquote();
        }
        // What a shell would have to expand is not literal.
        const bool plain = quoted ? value.find_first_of({"\"'`$\\\0", 6}) == value.npos
                                  : value.empty() || shell_quoted(std::string(value)) == value;
        if (!plain || !is_variable_name(name)) continue;
        found.push_back(std::string(name) + "=" + std::string(value));
    }
    return found;
}

} // namespace containerize::base

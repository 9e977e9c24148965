#include "conda/msgpack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include <fmt/format.h>
#include <simdjson.h>

namespace containerize::conda {

namespace {

/// Shards have four levels.
constexpr unsigned deepest = 16;

/// Writes each value as JSON as soon as it is read. nlohmann-json's parser can do the same, but takes some 20
/// times as long, for every solve. It would also need a guard against deep nesting, for each level of which
/// it calls itself.
class Converter {
public:
    Converter(std::string_view packed, std::size_t largest)
        : rest_(packed), size_(packed.size()), largest_(largest) {}

    Result<std::string> run() {
        json_.reserve(std::min(largest_, size_ + size_ / 4));
        TRY(value(0));
        if (!rest_.empty()) return refuse("more data follows it");
        if (!simdjson::validate_utf8(json_)) return refuse("a text is not UTF-8");
        return std::move(json_);
    }

private:
    Status value(unsigned depth) {
        if (depth > deepest) return refuse("it is nested too deeply");
        if (json_.size() > largest_) return refuse(fmt::format("it needs more than {} bytes", largest_));
        const auto kind = TRY(number(1));
        if (kind < 0x80) return integer(kind);
        if (kind < 0x90) return object(kind & 0x0FU, depth);
        if (kind < 0xA0) return array(kind & 0x0FU, depth);
        if (kind < 0xC0) return text(kind & 0x1FU);
        if (kind >= 0xE0) return integer(static_cast<std::int8_t>(kind));
        const auto argument = TRY(number(width_of_argument(kind)));
        switch (kind) {
        case 0xC0:
            return word("null");
        case 0xC2:
            return word("false");
        case 0xC3:
            return word("true");
        case 0xCA:
            return real(std::bit_cast<float>(static_cast<std::uint32_t>(argument)));
        case 0xCB:
            return real(std::bit_cast<double>(argument));
        case 0xD0:
            return integer(static_cast<std::int8_t>(argument));
        case 0xD1:
            return integer(static_cast<std::int16_t>(argument));
        case 0xD2:
            return integer(static_cast<std::int32_t>(argument));
        case 0xD3:
            return integer(static_cast<std::int64_t>(argument));
        default:
            break;
        }
        if (kind >= 0xC4 && kind <= 0xC6) return bytes(argument);
        if (kind >= 0xCC && kind <= 0xCF) return integer(argument);
        if (kind >= 0xD9 && kind <= 0xDB) return text(argument);
        if (kind == 0xDC || kind == 0xDD) return array(argument, depth);
        if (kind >= 0xDE) return object(argument, depth);
        return refuse("it contains a value of an unknown type");
    }

    /// In bytes, of the number that follows this first byte: a value, or the size of one.
    static unsigned width_of_argument(std::uint64_t kind) {
        if (kind >= 0xC4 && kind <= 0xC6) return 1U << (kind - 0xC4);
        if (kind == 0xCA || kind == 0xCB) return 4U << (kind - 0xCA);
        if (kind >= 0xCC && kind <= 0xCF) return 1U << (kind - 0xCC);
        if (kind >= 0xD0 && kind <= 0xD3) return 1U << (kind - 0xD0);
        if (kind >= 0xD9 && kind <= 0xDB) return 1U << (kind - 0xD9);
        if (kind == 0xDC || kind == 0xDD) return 2U << (kind - 0xDC);
        if (kind == 0xDE || kind == 0xDF) return 2U << (kind - 0xDE);
        return 0;
    }

    Status object(std::size_t count, unsigned depth) {
        json_ += '{';
        for (std::size_t i = 0; i < count; ++i) {
            if (i > 0) json_ += ',';
            const auto kind = rest_.empty() ? 0 : static_cast<std::uint8_t>(rest_.front());
            const bool is_text = (kind >= 0xA0 && kind < 0xC0) || (kind >= 0xD9 && kind <= 0xDB);
            if (!is_text) return refuse("a key is not a text");
            TRY(value(depth + 1));
            json_ += ':';
            TRY(value(depth + 1));
        }
        json_ += '}';
        return {};
    }

    Status array(std::size_t count, unsigned depth) {
        json_ += '[';
        for (std::size_t i = 0; i < count; ++i) {
            if (i > 0) json_ += ',';
            TRY(value(depth + 1));
        }
        json_ += ']';
        return {};
    }

    Status text(std::size_t size) {
        auto part = TRY(take(size));
        const auto is_special = [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; };
        json_ += '"';
        for (;;) {
            const auto* special = std::ranges::find_if(part, is_special);
            json_.append(part.begin(), special);
            if (special == part.end()) break;
            fmt::format_to(std::back_inserter(json_), "\\u{:04x}", static_cast<unsigned char>(*special));
            part.remove_prefix(static_cast<std::size_t>(special - part.begin()) + 1);
        }
        json_ += '"';
        return {};
    }

    Status bytes(std::size_t size) {
        constexpr std::string_view digits = "0123456789abcdef";
        const auto part = TRY(take(size));
        json_ += '"';
        for (const unsigned char byte : part) {
            json_ += digits[byte >> 4U];
            json_ += digits[byte & 0x0FU];
        }
        json_ += '"';
        return {};
    }

    Status integer(std::integral auto one) {
        const fmt::format_int digits(one);
        return word({digits.data(), digits.size()});
    }
    Status real(double one) { return word(std::isfinite(one) ? fmt::to_string(one) : "null"); }
    Status word(std::string_view one) {
        json_ += one;
        return {};
    }

    /// Numbers are in network order.
    Result<std::uint64_t> number(unsigned width) {
        const auto part = TRY(take(width));
        std::uint64_t result = 0;
        for (const unsigned char byte : part)
            result = (result << 8U) | byte;
        return result;
    }

    Result<std::string_view> take(std::size_t size) {
        if (size > rest_.size()) return refuse("it is truncated");
        const auto part = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return part;
    }

    [[nodiscard]] std::unexpected<Error> refuse(std::string why) const {
        return fail({.what = "this is not valid MessagePack",
                     .why = fmt::format("{} (at byte {})", why, size_ - rest_.size())});
    }

    std::string_view rest_;
    std::size_t size_, largest_;
    std::string json_;
};

} // namespace

Result<std::string> json_of_msgpack(std::string_view packed, std::size_t largest) {
    return Converter(packed, largest).run();
}

} // namespace containerize::conda

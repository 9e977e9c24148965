// Environment markers of requirements: "python_version < '3.11' and sys_platform == 'linux'".
#pragma once

#include "core/error.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::spec {

/// What is known about the environment when a file is read.
struct MarkerFacts {
    std::string machine; ///< platform_machine: "x86_64"
    /// The values of `extra`, `extras` and `dependency_groups`, normalised.
    std::set<std::string> extras = {}, groups = {};
};

/// A condition, as alternatives of conditions that all must hold. What is known is already decided. The rest,
/// which depends on the version of Python, is left to pip and uv.
class Marker {
public:
    /// Always true.
    Marker() : alternatives_({{}}) {}
    static Marker never() {
        Marker marker;
        marker.alternatives_.clear();
        return marker;
    }
    static Marker any_of(const std::vector<Marker>& markers);
    /// A single condition.
    static Marker of(const std::string& left, const std::string& comparison, const std::string& right);

    Marker& operator&=(const Marker& other);
    Marker& operator|=(const Marker& other);
    bool operator==(const Marker&) const = default;

    [[nodiscard]] bool is_always() const { return alternatives_.contains({}); }
    [[nodiscard]] bool is_never() const { return alternatives_.empty() && !too_complex_; }
    [[nodiscard]] std::size_t alternatives() const { return alternatives_.size(); }
    /// Whether it has become too large to be used.
    [[nodiscard]] bool is_too_complex() const { return too_complex_; }
    /// As a requirement has it after its semicolon.
    [[nodiscard]] std::string text() const;

private:
    struct Condition {
        std::string left, comparison, right;
        auto operator<=>(const Condition&) const = default;
    };
    using Conditions = std::set<Condition>;

    static Condition opposite(const Condition& condition);
    void simplify();
    bool merge_opposites();
    [[nodiscard]] std::size_t number_of_conditions() const;

    std::set<Conditions> alternatives_;
    bool too_complex_ = false;
};

/// Reads a marker; an empty text is always true. Fails with an input error without a place.
Result<Marker> parse_marker(std::string_view text, const MarkerFacts& facts);

} // namespace containerize::spec

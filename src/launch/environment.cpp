#include "launch/environment.h"

#include "core/text.h"

#include <algorithm>

namespace containerize::launch {

namespace {

/// A trailing colon adds an empty element, which means the working directory.
std::vector<std::string_view> elements_of(std::string_view path) {
    return path.empty() ? std::vector<std::string_view>() : split(path, ':');
}

} // namespace

std::string with_path_elements(std::string_view path, std::string_view elements, bool in_front) {
    const auto added = elements_of(elements);
    std::vector<std::string_view> all;
    for (const auto element : elements_of(path))
        if (std::ranges::find(added, element) == added.end()) all.push_back(element);
    all.insert(in_front ? all.begin() : all.end(), added.begin(), added.end());
    return joined(all, ":");
}

std::vector<EnvironmentChange> with_prefix(std::vector<EnvironmentChange> changes, std::string_view prefix) {
    static constexpr std::string_view placeholder = "${prefix}";
    for (auto& change : changes)
        replace_all(change.value, placeholder, prefix);
    return changes;
}

Variables::Variables(const char* const* environment) {
    for (; environment != nullptr && *environment != nullptr; ++environment)
        entries_.emplace_back(*environment);
}

std::vector<std::string>::iterator Variables::find(std::string_view name) {
    return std::ranges::find_if(entries_, [name](const std::string& entry) {
        return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
    });
}

const char* Variables::get(std::string_view name) const {
    const auto found = const_cast<Variables*>(this)->find(name);
    return found == entries_.end() ? nullptr : found->c_str() + name.size() + 1;
}

void Variables::set(std::string_view name, std::string_view value) {
    std::string entry;
    entry.reserve(name.size() + value.size() + 1);
    entry.append(name).append("=").append(value);
    if (const auto found = find(name); found != entries_.end())
        *found = std::move(entry);
    else
        entries_.push_back(std::move(entry));
}

void Variables::unset(std::string_view name) {
    if (const auto found = find(name); found != entries_.end()) entries_.erase(found);
}

void Variables::apply(const std::vector<EnvironmentChange>& changes) {
    for (const auto& change : changes) {
        const char* old = get(change.name);
        switch (change.kind) {
        case EnvironmentChange::Kind::set:
            set(change.name, change.value);
            break;
        case EnvironmentChange::Kind::unset:
            unset(change.name);
            break;
        case EnvironmentChange::Kind::prepend:
        case EnvironmentChange::Kind::append: {
            const bool in_front = change.kind == EnvironmentChange::Kind::prepend;
            set(change.name, with_path_elements(old == nullptr ? "" : old, change.value, in_front));
            break;
        }
        }
    }
}

std::vector<char*> Variables::pointers() {
    return pointers_to(entries_);
}

} // namespace containerize::launch

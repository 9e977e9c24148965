#include "conda/channel.h"

#include "core/filesystem.h"
#include "core/url.h"
#include "core/variables.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace containerize::conda {

namespace {

constexpr std::string_view anaconda_server = "https://repo.anaconda.com";
constexpr std::array anaconda_defaults = {"https://repo.anaconda.com/pkgs/main",
                                          "https://repo.anaconda.com/pkgs/r"};
constexpr const char* default_channel = "conda-forge";
constexpr const char* other_address =
    "Give an https address of the channel or of a mirror, or copy it to a directory and give its path.";

constexpr std::string_view terms = "its terms of service (anaconda.com/legal) require a paid licence for "
                                   "organisations of 200 people or more";

std::string_view without_scheme(std::string_view url) {
    const auto at = url.find("://");
    return at == std::string_view::npos ? url : url.substr(at + 3);
}

bool names_platform(std::string_view text) {
    if (text == "noarch") return true;
    constexpr std::array systems = {"linux-", "osx-", "win-", "emscripten-", "wasi-", "freebsd-", "zos-"};
    return std::ranges::any_of(systems, [text](std::string_view name) { return text.starts_with(name); });
}

std::string_view without_subdir(std::string_view text) {
    text = without_end_slash(text);
    const auto slash = text.rfind('/');
    if (slash == std::string_view::npos || slash == 0 || !names_platform(text.substr(slash + 1))) return text;
    return without_end_slash(text.substr(0, slash));
}

/// The part of `text` after `base` and a slash; nothing if it is not below `base`.
std::optional<std::string_view> below(std::string_view text, std::string_view base) {
    if (!text.starts_with(base) || text.size() <= base.size() + 1 || text[base.size()] != '/')
        return std::nullopt;
    return text.substr(base.size() + 1);
}

bool is_path(std::string_view text) {
    return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
           text.starts_with("~/") || text == "." || text == ".." || text == "~";
}

constexpr std::string_view s3 = "s3://";

bool can_fetch(std::string_view url) {
    return url.starts_with(s3) || url.starts_with("https://") || url.starts_with("http://") ||
           url.starts_with("file://");
}

/// Inserts the configured token for this URL in the form "/t/TOKEN", which anaconda.org's servers expect.
std::string with_token(const std::string& url, const Config& config) {
    // A token or login in the URL itself takes precedence.
    if (!can_fetch(url) || url.starts_with("file:") || without_credentials(url) != url) return url;
    const std::pair<const std::string, std::string>* best = nullptr;
    for (const auto& entry : config.tokens) {
        const auto key = without_scheme(entry.first);
        if (is_place_of(key, url) &&
            (best == nullptr || best->first.starts_with('*') ||
             (!key.starts_with('*') && key.size() > without_scheme(best->first).size())))
            best = &entry;
    }
    if (best == nullptr || best->second.empty()) return url;
    const auto host_end = std::min(url.find('/', url.find("://") + 3), url.size());
    return url.substr(0, host_end) + "/t/" + best->second + url.substr(host_end);
}

/// Where to fetch what is at the URL: the mirrors of the longest prefix, then the URL itself. A login in the
/// URL is only for its own server.
std::vector<std::string> addresses_of(const std::string& url, const Config& config) {
    // S3 compares the encoded path with the signature.
    const auto plain = without_credentials(url);
    if (url.starts_with(s3)) return {config.s3_server + "/" + percent_encoded(plain.substr(s3.size()), "/")};
    std::size_t longest = 0;
    for (const auto& mirror : config.url_mirrors)
        if (plain == mirror.prefix || below(plain, mirror.prefix))
            longest = std::max(longest, mirror.prefix.size());
    std::vector<std::string> addresses;
    for (const auto& mirror : config.url_mirrors)
        if (mirror.prefix.size() == longest && plain.starts_with(mirror.prefix))
            addresses.push_back(with_token(mirror.url + plain.substr(longest), config));
    addresses.push_back(with_token(url, config));
    return addresses;
}

/// The short name of the channel at a canonical URL.
std::string name_of(const std::string& url, const Config& config) {
    const auto place = without_scheme(url);
    const auto alias = without_credentials(config.channel_alias);
    for (const auto& [name, base] : config.custom_channels) {
        const auto rest = below(place, without_scheme(without_credentials(without_end_slash(base))));
        if (rest && (*rest == name || below(*rest, name))) return std::string(*rest);
    }
    if (const auto rest = below(place, without_scheme(alias))) return std::string(*rest);
    if (const auto rest = below(place, without_scheme(anaconda_server))) return std::string(*rest);
    return url;
}

Channel at_url(std::string_view text, const Config& config) {
    Channel channel;
    std::string url(without_subdir(text.substr(0, text.find_first_of("?#"))));
    const auto alias = without_credentials(config.channel_alias);
    // Below an https alias, "http://conda.anaconda.org/x" names the same channel: use https for it, too.
    if (below(without_scheme(without_credentials(url)), without_scheme(alias)) &&
        alias.starts_with("https:") && url.starts_with("http:"))
        url.insert(4, "s");
    channel.url = without_credentials(url);
    channel.name = name_of(channel.url, config);
    channel.mirrors = addresses_of(url, config);
    return channel;
}

Result<Channel> at_path(const Located& asked, const Config& config) {
    std::string path = asked.text;
    if (path.starts_with('~')) {
        const char* home = value_of("HOME");
        if (home == nullptr || *home != '/')
            return fail_input("the channel '" + path + "' cannot be found", "HOME is not set", asked.where);
        path.replace(0, 1, home);
    }
    auto absolute = TRY(resolve(std::string(without_subdir(path))));
    return at_url(file_url(absolute.string()), config);
}

/// The URL of a channel "pkgs/...": the site's mirror if default_channels has one, else Anaconda's.
std::optional<std::string> anaconda_channel(std::string_view name, const Config& config) {
    if (!name.starts_with("pkgs/")) return std::nullopt;
    for (const auto& channel : config.default_channels)
        if (is_url(channel.text) && without_credentials(channel.text).ends_with("/" + std::string(name)))
            return channel.text;
    return std::string(anaconda_server) + "/" + std::string(name);
}

std::string url_of_name(std::string_view name, const Config& config) {
    // An entry for "pkgs/main" also applies to "pkgs/main/label/dev".
    for (auto part = name; !part.empty();
         part = part.substr(0, part.rfind('/') == std::string_view::npos ? 0 : part.rfind('/')))
        if (const auto custom = config.custom_channels.find(std::string(part));
            custom != config.custom_channels.end())
            return std::string(without_end_slash(custom->second)) + "/" + std::string(name);
    if (auto url = anaconda_channel(name, config)) return *url;
    return config.channel_alias + "/" + std::string(name);
}

Result<Channel> named(const Located& asked, const Config& config) {
    const std::string name(without_subdir(asked.text));
    const auto mirrored = config.mirrored_channels.find(name);
    const auto url = url_of_name(name, config);
    auto channel = at_url(url, config);
    if (mirrored == config.mirrored_channels.end()) {
        if (can_fetch(url)) return channel;
        return fail_input("the channel '" + name + "' cannot be used",
                          "its URL is not an http, https, s3 or file URL: " + without_credentials(url),
                          asked.where, other_address);
    }
    const auto own_url = std::exchange(channel.url, {});
    channel.mirrors.clear();
    for (const auto& mirror : mirrored->second) {
        if (!can_fetch(mirror)) {
            log::detail(
                fmt::format("the mirror {} of {} is ignored: it is not an http, https, s3 or file URL",
                            without_credentials(mirror), name));
            continue;
        }
        const auto one = at_url(mirror, config);
        // If only mirrors are configured, the channel may not exist anywhere else.
        if (channel.url.empty() || one.url == own_url) channel.url = one.url;
        channel.mirrors.insert(channel.mirrors.end(), one.mirrors.begin(), one.mirrors.end());
    }
    if (channel.mirrors.empty())
        return fail_input("the channel '" + name + "' cannot be used",
                          "none of its mirrored_channels is an http, https, s3 or file URL", asked.where,
                          other_address);
    channel.name = name;
    return channel;
}

Result<Channel> resolve_any(const Located& asked, const Config& config) {
    if (is_url(asked.text)) {
        if (asked.text.find_first_not_of('/', s3.size()) == std::string::npos && asked.text.starts_with(s3))
            return fail_input("the channel '" + asked.text + "' cannot be used", "it names no bucket",
                              asked.where, "Write s3://BUCKET/PATH.");
        if (asked.text.starts_with(s3) && without_credentials(asked.text) != asked.text)
            return fail_input("the channel '" + without_credentials(asked.text) + "' cannot be used",
                              "an address of S3 has no login", asked.where,
                              "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.");
        if (can_fetch(asked.text)) return at_url(asked.text, config);
        return fail_input("the channel '" + without_credentials(asked.text) + "' cannot be used",
                          "its URL is not an http, https, s3 or file URL", asked.where, other_address);
    }
    if (is_path(asked.text)) return at_path(asked, config);
    const bool strange = std::ranges::any_of(
        asked.text, [](unsigned char c) { return c <= ' ' || c == 0x7f || c == ':' || c == '\\'; });
    if (asked.text.empty() || strange || asked.text.find("..") != std::string::npos)
        return fail_input("'" + asked.text + "' is not a channel", {}, asked.where,
                          "Give a name (conda-forge), a URL (https://...) or a path (/srv/channel).");
    return named(asked, config);
}

Result<Channel> resolve_one(const Located& asked, const Config& config) {
    auto channel = TRY(resolve_any(asked, config));
    if (channel.url.starts_with(s3) && config.s3_problem) return fail(Error(*config.s3_problem));
    return channel;
}

/// The members of a multichannel; nothing for other channels.
std::optional<std::vector<Located>> members(const Located& asked, const Config& config) {
    std::vector<Located> result;
    if (const auto found = config.custom_multichannels.find(asked.text);
        found != config.custom_multichannels.end()) {
        for (const auto& member : found->second)
            result.push_back({member, asked.where});
        return result;
    }
    if (asked.text != "defaults") return std::nullopt;
    if (!config.default_channels.empty()) return config.default_channels;
    for (const char* url : anaconda_defaults)
        result.push_back({url, asked.where});
    return result;
}

bool contains(const std::vector<Channel>& channels, const Channel& channel) {
    return std::ranges::find(channels, channel) != channels.end();
}

bool names(const std::vector<std::string>& list, const Channel& channel, const Config& config) {
    return std::ranges::any_of(list, [&](const auto& text) { return is_channel(text, channel.url, config); });
}

Status check_policy(const Channel& channel, const Located& asked, const Config& config) {
    const bool allowed = config.allowed_channels.empty() || names(config.allowed_channels, channel, config);
    if (allowed && !names(config.denied_channels, channel, config)) return {};
    return fail_input("the channel " + channel.name + " is not allowed here",
                      allowed ? "it is in denylist_channels of conda's configuration"
                              : "it is not in allowlist_channels of conda's configuration",
                      asked.where,
                      allowed
                          ? "Use another channel."
                          : fmt::format("Allowed channels: {}.", fmt::join(config.allowed_channels, ", ")));
}

/// A channel and the text that named it.
struct Candidate {
    Channel channel;
    Located asked;
};

Result<std::vector<Candidate>> resolve_all(const std::vector<Located>& asked, const Config& config) {
    std::vector<Candidate> result;
    for (const auto& one : asked) {
        auto channels = TRY(resolve_channel(one, config));
        for (auto& channel : channels) {
            TRY(check_policy(channel, one, config));
            result.push_back({std::move(channel), one});
        }
    }
    return result;
}

/// `role` says what the channel is in the request.
std::unexpected<Error> refuse_anaconda(const Located& asked, const char* role) {
    return fail_input(
        fmt::format("'{}', {}, is a channel of Anaconda", without_credentials(asked.text), role),
        std::string(terms), asked.where,
        "Use conda-forge instead, which has nearly all of its packages. If Anaconda's terms "
        "permit your use,\nallow the channel with --allow-defaults.");
}

std::string note_of_terms(const std::vector<std::string>& names) {
    return fmt::format("packages of {} come from Anaconda: {}", fmt::join(names, ", "), terms);
}

class Choice {
public:
    Choice(const Config& config, bool allow_defaults) : allow_(allow_defaults) {
        for (const auto& site : config.site_channels)
            if (auto channels = resolve_channel(site, config))
                site_.insert(site_.end(), channels->begin(), channels->end());
    }

    /// Adds a channel, or leaves it out if Anaconda's terms apply and it is not permitted.
    void offer(const Candidate& candidate) {
        if (!has_anaconda_terms(candidate.channel) || permitted(candidate.channel)) return take(candidate);
        if (std::ranges::find(left_out_, candidate.asked.text, &Located::text) == left_out_.end())
            left_out_.push_back(candidate.asked);
    }

    void take(const Candidate& candidate) {
        if (contains(chosen.channels, candidate.channel)) return;
        chosen.channels.push_back(candidate.channel);
        if (has_anaconda_terms(candidate.channel)) with_terms_.push_back(candidate.channel.name);
    }

    [[nodiscard]] bool permitted(const Channel& channel) const { return allow_ || contains(site_, channel); }
    [[nodiscard]] const std::vector<Located>& left_out() const { return left_out_; }

    void add_notes(const std::vector<Located>& asked) {
        for (const auto& channel : left_out_) {
            const auto note = fmt::format("{}: the channel '{}' is ignored: {}. --allow-defaults allows it.",
                                          channel.where, without_credentials(channel.text), terms);
            // conda writes `defaults` into configurations by itself, so a note in each build would be noise.
            if (std::ranges::find(asked, channel.text, &Located::text) != asked.end())
                chosen.notes.push_back(note);
            else
                log::detail(note);
        }
        if (!with_terms_.empty()) chosen.notes.push_back(note_of_terms(with_terms_));
    }

    ChannelChoice chosen;

private:
    bool allow_;
    std::vector<Channel> site_;
    std::vector<Located> left_out_;
    std::vector<std::string> with_terms_;
};

} // namespace

Result<std::vector<Channel>> resolve_channel(const Located& asked, const Config& config) {
    std::vector<Channel> result;
    for (const auto& one : members(asked, config).value_or(std::vector{asked})) {
        auto channel = TRY(resolve_one(one, config));
        if (!contains(result, channel)) result.push_back(std::move(channel));
    }
    return result;
}

bool is_channel(std::string_view asked, std::string_view url, const Config& config) {
    const auto channels = resolve_channel({std::string(asked), {}}, config);
    return channels && std::ranges::find(*channels, url, &Channel::url) != channels->end();
}

bool has_anaconda_terms(const Channel& channel) {
    const auto host = url_host(channel.url);
    const auto place = without_scheme(channel.url);
    const auto path = place.substr(std::min(place.find('/'), place.size()));
    if (host == "repo.anaconda.com" || host == "repo.continuum.io") return path.starts_with("/pkgs/");
    constexpr std::array mirrored = {"anaconda", "main", "r", "pro", "free", "msys2", "pkgs"};
    if (host != "conda.anaconda.org" || path.size() < 2) return false;
    const auto first = path.substr(1, path.find('/', 1) - 1);
    return std::ranges::find(mirrored, first) != mirrored.end();
}

Result<ChannelChoice> choose_channels(const std::vector<Located>& asked,
                                      const std::vector<Located>& of_packages, const Config& config,
                                      bool allow_defaults) {
    std::vector<Located> wanted;
    bool with_configured = true;
    for (const auto& channel : asked) {
        if (channel.text == "nodefaults")
            with_configured = false;
        else
            wanted.push_back(channel);
    }
    if (with_configured) wanted.insert(wanted.end(), config.channels.begin(), config.channels.end());
    if (wanted.empty()) wanted.push_back({default_channel, {}});

    auto candidates = TRY(resolve_all(wanted, config));
    auto for_packages = TRY(resolve_all(of_packages, config));

    Choice choice(config, allow_defaults);
    for (const auto& candidate : candidates)
        choice.offer(candidate);
    if (choice.chosen.channels.empty())
        return refuse_anaconda(choice.left_out().front(), "the only given channel");
    for (const auto& candidate : for_packages) {
        if (has_anaconda_terms(candidate.channel) && !choice.permitted(candidate.channel))
            return refuse_anaconda(candidate.asked, "which a package specification names");
        choice.take(candidate);
    }
    choice.add_notes(asked);
    return std::move(choice.chosen);
}

Result<std::vector<std::string>> check_listed_channels(const std::vector<Located>& channels,
                                                       const Config& config) {
    auto candidates = TRY(resolve_all(channels, config));
    std::vector<std::string> with_terms;
    for (const auto& candidate : candidates)
        if (has_anaconda_terms(candidate.channel)) with_terms.push_back(candidate.channel.name);
    if (with_terms.empty()) return std::vector<std::string>();
    return std::vector{note_of_terms(with_terms)};
}

std::string list_address(const Channel& channel, const std::string& subdir) {
    return (channel.url.starts_with(s3) ? channel.mirrors.front() : channel.url) + "/" + subdir;
}

std::vector<std::string> download_urls(const std::string& url, const std::vector<Channel>& channels,
                                       const Config& config) {
    const auto through = [&](const Channel& channel, std::string_view base) {
        std::vector<std::string> result;
        if (const auto rest = below(url, base))
            for (const auto& mirror : channel.mirrors)
                result.push_back(mirror + "/" + std::string(*rest));
        return result;
    };
    for (const auto& channel : channels)
        if (auto result = through(channel, channel.url); !result.empty()) return result;
    // Without channels, as for a lock file, the site's mirrors apply all the same.
    for (const auto& [name, mirrors] : config.mirrored_channels)
        if (const auto channel = named({name, {}}, config))
            for (const auto& base : {channel->url, at_url(url_of_name(name, config), config).url})
                if (auto result = through(*channel, base); !result.empty()) return result;
    return addresses_of(url, config);
}

} // namespace containerize::conda

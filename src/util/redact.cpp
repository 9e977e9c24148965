#include "util/redact.h"

#include "core/core_dumps.h"
#include "core/text.h"
#include "core/url.h"
#include "core/variables.h"
#include "util/base64.h"
#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

namespace containerize {

namespace {

constexpr std::size_t none = std::string_view::npos;
/// Shorter ones are only recognized by position: "abc" appears in too much harmless text.
constexpr std::size_t shortest_known = 4;
/// Up to this length a known secret counts only as a separate word, because passwords are often words.
constexpr std::size_t longest_word = 7;
/// From this length on, a value is remembered even without a telling name.
constexpr std::size_t looks_random = 20;

bool is_alphanumeric(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_one_of(char c, std::string_view some) {
    return some.find(c) != none;
}
bool is_of_scheme(char c) {
    return is_alphanumeric(c) || is_one_of(c, "+-.");
}
/// What ends an address or a value: no program writes these characters within one.
bool ends_word(char c) {
    return static_cast<unsigned char>(c) <= ' ' || is_one_of(c, "\"'`<>");
}
/// Looks no further than `longest_address`, to bound the time for what a program prints.
std::size_t end_of_word(std::string_view text, std::size_t start) {
    constexpr std::size_t longest_address = 4096;
    const auto end = std::min(text.size(), start + longest_address);
    while (start < end && !ends_word(text[start]))
        ++start;
    return start;
}

// --- names

std::vector<std::string> parts_of(std::string_view name) {
    std::vector<std::string> parts(1);
    for (const char c : lower(name)) {
        if (is_alphanumeric(c))
            parts.back() += c;
        else if (!parts.back().empty())
            parts.emplace_back();
    }
    if (parts.back().empty()) parts.pop_back();
    return parts;
}

/// "PIP_PASSWORD", "--api-key", "access_token"; not "TOKENIZERS" nor "--password-file".
bool is_secret_name(std::string_view name) {
    constexpr std::array<std::string_view, 12> telling = {
        "password", "passwd", "passphrase", "pass",   "secret",     "secrets",
        "token",    "tokens", "jwt",        "apikey", "credential", "authorization"};
    constexpr std::array<std::string_view, 6> of_key = {"api",     "access",  "secret",
                                                        "private", "account", "auth"};
    constexpr std::array<std::string_view, 15> elsewhere = {
        "file", "path",   "dir",    "stdin", "command", "cmd",      "type",       "name",
        "id",   "helper", "prompt", "cache", "url",     "required", "parallelism"};
    const auto parts = parts_of(name);
    if (parts.empty() || std::ranges::find(elsewhere, parts.back()) != elsewhere.end()) return false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (std::ranges::find(telling, parts[i]) != telling.end()) return true;
        if (parts[i] == "key" && i > 0 && std::ranges::find(of_key, parts[i - 1]) != of_key.end())
            return true;
    }
    return false;
}

/// For running text, where "token: " may be part of a sentence: an option, a variable, or a wholly telling
/// name.
bool is_secret_key(std::string_view name) {
    if (!is_secret_name(name)) return false;
    if (name.starts_with('-')) return true;
    const bool is_variable = std::ranges::none_of(name, [](char c) {
        return std::islower(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    });
    const auto parts = parts_of(name);
    return is_variable || parts.size() == 1 || parts.front() == "proxy" || parts.front() == "x" ||
           parts.back() == "token" || parts.back() == "password" || parts.back() == "key" ||
           parts.back() == "secret";
}

/// Names whose values are addresses, possibly with a login and without "https://".
bool is_address_name(std::string_view name) {
    const auto parts = parts_of(name);
    if (parts.empty()) return false;
    return parts.back() == "proxy" || std::ranges::equal(parts, std::array{"trusted", "host"}) ||
           (parts.size() > 1 && parts.back() == "url" && parts[parts.size() - 2] == "index");
}

/// "${TOKEN}", "$USER:$TOKEN": a reference to a secret, but none itself.
bool is_reference(std::string_view value) {
    if (value.find('$') == none) return false;
    for (std::size_t at = 0; at < value.size();) {
        if (value[at] == ':') {
            ++at;
            continue;
        }
        if (value[at] != '$') return false;
        const bool braced = value.substr(at).starts_with("${");
        at += braced ? 2 : 1;
        const auto start = at;
        while (at < value.size() && (is_alphanumeric(value[at]) || value[at] == '_'))
            ++at;
        if (at == start) return false;
        if (!braced) { // a password may begin like this
            const auto name = value.substr(start, at - start);
            if (std::ranges::any_of(name, [](unsigned char c) { return std::islower(c) != 0; })) return false;
            continue;
        }
        if (at == value.size() || value[at] != '}') return false;
        ++at;
    }
    return true;
}

/// What is found in place of a secret but is none, including words in our own messages.
bool is_placeholder(std::string_view value) {
    constexpr std::array<std::string_view, 10> words = {"true", "false", "yes",      "no",   "none",
                                                        "null", "TOKEN", "PASSWORD", "USER", "USER:PASSWORD"};
    return value.find_first_not_of('*') == none || std::ranges::find(words, value) != words.end();
}

/// For text in which a shell, pip or we ourselves replace variables by values.
bool says_nothing(std::string_view value) {
    return is_placeholder(value) || is_reference(value) || value.starts_with("$(");
}

// --- secrets by position

struct Span {
    std::size_t begin, end;
    std::string_view known; ///< the part to be remembered; empty if it is too common
};

/// Collects the positions of secrets in one text.
class Finder {
public:
    explicit Finder(std::string_view text) : text_(text) {
        for (auto mark = text.find("://"); mark != none; mark = text.find("://", mark + 3))
            look_at_url(mark);
        look_at_assignments();
        look_at_headers();
    }

    /// From left to right, without overlaps.
    std::vector<Span> spans() {
        std::ranges::stable_sort(spans_, {}, &Span::begin);
        std::vector<Span> apart;
        for (const auto& span : spans_) {
            if (!apart.empty() && span.begin < apart.back().end)
                apart.back().end = std::max(apart.back().end, span.end);
            else
                apart.push_back(span);
        }
        return apart;
    }
    /// The parts to be remembered.
    std::vector<std::string_view> known() const {
        std::vector<std::string_view> texts;
        for (const auto& span : spans_)
            if (!span.known.empty()) texts.push_back(span.known);
        return texts;
    }

private:
    [[nodiscard]] std::string_view part(std::size_t begin, std::size_t end) const {
        return text_.substr(begin, end - begin);
    }
    /// The first of these characters from `begin` on; `end` if there is none.
    [[nodiscard]] std::size_t find(std::string_view one_of, std::size_t begin, std::size_t end) const {
        const auto at = part(begin, end).find_first_of(one_of);
        return at == none ? end : begin + at;
    }
    void add(std::size_t begin, std::size_t end, std::string_view known = {}) {
        if (begin < end) spans_.push_back({begin, end, known});
    }

    void look_at_url(std::size_t mark) {
        auto start = mark;
        while (start > 0 && is_of_scheme(text_[start - 1]))
            --start;
        const auto scheme = part(start, mark);
        if (scheme.empty() || scheme.ends_with("file")) return;
        const auto authority = mark + 3;
        const auto end = end_of_word(text_, authority);
        const auto host = authority + url_login_size(part(authority, end));
        if (host > authority) look_at_login(authority, host - 1, scheme.ends_with("ssh"));
        const auto path = find("/?#", host, end);
        const auto query = find("?", path, end);
        const auto fragment = find("#", path, end);
        look_at_path(path, std::min(query, fragment));
        if (query < fragment) look_at_pairs(query + 1, fragment, true);
        if (fragment < end) look_at_pairs(fragment + 1, end, false);
    }

    void look_at_login(std::size_t begin, std::size_t end, bool is_ssh) {
        const auto login = part(begin, end);
        if (says_nothing(login)) return;
        const auto colon = std::min(login.find(':'), login.size());
        const auto password = login.substr(std::min(colon + 1, login.size()));
        if (is_ssh) { // its user name is no secret, and shows which key is used
            if (!says_nothing(password)) add(begin + colon + 1, end, password);
            return;
        }
        const auto user = login.substr(0, colon);
        const bool user_is_token = password.empty() || user.size() >= looks_random;
        if (!user_is_token && is_reference(password) && has_only_braced_variables(password)) return;
        add(begin, end, user_is_token ? user : std::string_view());
        if (!says_nothing(password)) add(begin, end, password);
    }

    /// "/t/TOKEN" in URLs of conda servers.
    void look_at_path(std::size_t begin, std::size_t end) {
        const auto path = part(0, end);
        for (auto at = path.find("/t/", begin); at != none && at + 3 < end; at = path.find("/t/", at + 1)) {
            const auto stop = find("/", at + 3, end);
            const auto token = part(at + 3, stop);
            const bool fits = at == begin || std::ranges::all_of(token, [](char c) {
                                  return is_alphanumeric(c) || c == '-' || c == '_';
                              });
            if (token.empty() || !fits || says_nothing(token)) continue;
            const bool has_digit = token.find_first_of("0123456789") != none;
            add(at + 3, stop, has_digit || token.size() >= looks_random ? token : std::string_view());
        }
    }

    /// name=value&name=value. In a query, only names known to be harmless keep their values.
    void look_at_pairs(std::size_t begin, std::size_t end, bool is_query) {
        constexpr std::array<std::string_view, 17> harmless = {
            "rev",  "branch", "tag",  "ref",  "subdirectory", "egg",    "version", "filename", "file",
            "name", "page",   "path", "type", "format",       "sha256", "md5",     "package"};
        while (begin < end) {
            const auto stop = find("&", begin, end);
            const auto equals = find("=", begin, stop);
            const auto name = part(begin, equals);
            const auto first = equals == stop ? begin : equals + 1;
            const auto value = part(first, stop);
            begin = stop + 1;
            const bool telling = equals < stop && is_secret_name(name);
            const bool stays =
                is_query ? std::ranges::find(harmless, lower(name)) != harmless.end() : !telling;
            if (stays || says_nothing(value)) continue;
            add(first, stop, telling || value.size() >= looks_random ? value : std::string_view());
        }
    }

    /// NAME=value, --option value, "name": "value".
    void look_at_assignments() {
        const auto in_name = [](char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.'; };
        for (std::size_t at = 0; at < text_.size();) {
            if (!in_name(text_[at])) {
                ++at;
                continue;
            }
            const auto start = at;
            while (at < text_.size() && in_name(text_[at]))
                ++at;
            const auto name = part(start, at);
            // "/etc/passwd: ..." is a file name and a message about it.
            if (start > 0 && text_[start - 1] == '/' && text_.substr(at).starts_with(": ")) continue;
            const bool telling = is_secret_key(name);
            if (!telling && !is_address_name(name) && name != "-u" && name != "--user") continue;
            auto [first, stop] = value_after(at, name.starts_with('-'));
            if (first == stop) continue;
            const bool is_pair = start > 0 && is_one_of(text_[start - 1], "?&#");
            if (is_pair) stop = find("&", first, stop);
            if (telling)
                look_at_value(name, first, stop);
            else
                look_at_address(first, stop);
            at = std::max(at, first);
        }
    }

    /// The range of the value that follows the name ending at `at`; empty if there is none.
    [[nodiscard]] std::pair<std::size_t, std::size_t> value_after(std::size_t at, bool is_option) const {
        const std::pair nothing{at, at};
        const auto skip_blanks = [&] {
            while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t'))
                ++at;
        };
        const auto is_at = [&](std::string_view one_of) {
            return at < text_.size() && one_of.find(text_[at]) != none;
        };
        const auto end_of_name = at;
        if (is_at("\"'")) ++at; // {"token": ...}
        skip_blanks();
        if (is_at("=:")) {
            const bool is_version = text_.substr(at).starts_with("==") || text_.substr(at).starts_with("://");
            if (is_version) return nothing;
            ++at;
            skip_blanks();
        } else if (!is_option || at == end_of_name) {
            return nothing;
        }
        if (is_at("\"'")) {
            const char closing[] = {text_[at], '\n', '\0'};
            const auto end = find(closing, at + 1, text_.size());
            if (end < text_.size() && text_[end] != '\n') return {at + 1, end};
            ++at; // an unpaired quote, or one that spans several lines
        }
        if (is_at("-") && is_option) return nothing;
        auto end = end_of_word(text_, at);
        while (end > at && is_one_of(text_[end - 1], ",;)]}"))
            --end;
        return {at, end};
    }

    void look_at_value(std::string_view name, std::size_t first, std::size_t stop) {
        // "Authorization: Bearer ..."
        const auto scheme = text_.substr(first, 7);
        if (parts_of(name).back() == "authorization" || scheme == "Bearer ") {
            first = std::min(text_.find_first_not_of(' ', end_of_word(text_, first)), text_.size());
            stop = end_of_word(text_, first);
        }
        const auto value = part(first, stop);
        if (!says_nothing(value)) add(first, stop, value);
    }

    /// user:password@host, user:password
    void look_at_address(std::size_t first, std::size_t stop) {
        const auto value = part(first, stop);
        if (value.find("://") != none) return;
        const auto login = value.substr(0, value.rfind('@'));
        const auto colon = login.find(':');
        if (colon == none || says_nothing(login) || says_nothing(login.substr(colon + 1))) return;
        const bool has_host = login.size() < value.size();
        const bool is_port = login.find_first_not_of("0123456789", colon + 1) == none;
        if (!has_host && is_port) return;
        add(first, first + login.size(), login.substr(colon + 1));
    }

    /// "Bearer ..." and "Basic ..." without the header's name.
    void look_at_headers() {
        for (const std::string_view scheme : {"Bearer ", "Basic "})
            for (auto at = text_.find(scheme); at != none; at = text_.find(scheme, at + 1)) {
                const auto first = at + scheme.size();
                const auto stop = end_of_word(text_, first);
                if (stop - first >= looks_random) add(first, stop, part(first, stop));
            }
    }

    std::string_view text_;
    std::vector<Span> spans_;
};

// --- known secrets

std::string with_backslashes(std::string_view text, std::string_view before) {
    std::string result;
    for (const char c : text) {
        if (before.find(c) != none) result += '\\';
        result += c;
    }
    return result;
}

/// What base64 makes of a secret after 0, 1 or 2 other bytes, such as the "user:" of basic authentication,
/// without the characters that depend on its neighbours.
std::vector<std::string> within_base64(const std::string& secret) {
    std::vector<std::string> forms;
    for (std::size_t before = 0; before < 3; ++before) {
        const auto encoded = base64(std::string(before, ' ') + secret);
        const auto first = (before * 8 + 5) / 6;
        const auto end = (before + secret.size()) * 8 / 6;
        forms.push_back(encoded.substr(first, end - first));
    }
    return forms;
}

/// The ways in which programs write the same secret.
std::vector<std::string> forms_of(std::string_view secret) {
    std::vector<std::string> forms;
    for (const auto& plain : {std::string(secret), url_decoded(secret)}) {
        // Parts of a short secret's base64 would match unrelated text.
        if (plain.size() > longest_word) std::ranges::move(within_base64(plain), std::back_inserter(forms));
        forms.push_back(plain);
        for (const std::string_view digits : {"0123456789ABCDEF", "0123456789abcdef"})
            // The last are what RFC 3986 allows there.
            for (const std::string_view kept : {"", "/", "!$&'()*+,;="})
                forms.push_back(percent_encoded(plain, kept, digits));
        forms.push_back(with_backslashes(plain, "\\\""));
        forms.push_back(with_backslashes(plain, "\\'"));
        forms.push_back(with_backslashes(plain, "/"));
        auto in_shell = plain;
        replace_all(in_shell, "'", "'\\''");
        forms.push_back(std::move(in_shell));
    }
    return forms;
}

/// The secrets of this process and what replaces them, longer ones first, since one may be part of another.
struct Known {
    struct LongerFirst {
        bool operator()(const std::string& a, const std::string& b) const {
            return a.size() != b.size() ? a.size() > b.size() : a < b;
        }
    };
    using Forms = std::map<std::string, std::string, LongerFirst>;
    std::mutex mutex;
    Forms anywhere;
    Forms in_urls; ///< also has the values of variables
};

Known& known() {
    static Known the_known;
    return the_known;
}

void replace_form(std::string& text, const std::string& form, const std::string& mark) {
    auto at = text.find(form);
    if (at == none) return;
    const bool anywhere = form.size() > longest_word;
    while (at != none) {
        const auto end = at + form.size();
        const bool is_word = (at == 0 || !is_alphanumeric(text[at - 1])) &&
                             (end == text.size() || !is_alphanumeric(text[end]));
        if (anywhere || is_word) {
            text.replace(at, form.size(), mark);
            at = text.find(form, at + mark.size());
        } else {
            at = text.find(form, at + 1);
        }
    }
}

void replace_forms(std::string& text, const Known::Forms& forms) {
    for (const auto& [form, mark] : forms)
        replace_form(text, form, mark);
}

/// The length of what is between a quote and the path of a request, '"GET /simple/x HTTP/1.1"'; 0 if it is
/// none.
std::size_t method_before_path(std::string_view quoted) {
    for (const std::string_view method : {"\"GET ", "\"HEAD ", "\"POST "})
        if (quoted.starts_with(method) && quoted.substr(method.size()).starts_with('/')) return method.size();
    return 0;
}

/// Where the next URL of another machine is, or its path alone, as pip prints it: "with url: /simple/x",
/// "broken by '...': /simple/x", '"GET /simple/x HTTP/1.1"'. Empty at the end if there is none.
std::string_view next_url(std::string_view text) {
    for (std::size_t at = 0; (at = text.find_first_of(":\"", at)) != none; ++at) {
        const auto before = text.substr(0, at);
        const auto rest = text.substr(at);
        if (const auto method = method_before_path(rest); method != 0)
            return text.substr(at + method, end_of_word(text, at + method) - at - method);
        const bool is_path = rest.starts_with(": /") && (before.ends_with(" url") || before.ends_with('\''));
        if (is_path) return text.substr(at + 2, end_of_word(text, at + 3) - at - 2);
        if (!rest.starts_with("://")) continue;
        auto start = at;
        while (start > 0 && is_of_scheme(text[start - 1]))
            --start;
        if (!text.substr(start, at - start).ends_with("file"))
            return text.substr(start, end_of_word(text, at + 3) - start);
    }
    return text.substr(text.size());
}

/// Replaces forms in each of these.
std::string with_forms_replaced_in_urls(std::string_view text, const Known::Forms& forms) {
    std::string result;
    while (!text.empty()) {
        const auto url = next_url(text);
        result.append(text.begin(), url.begin());
        auto replaced = std::string(url);
        replace_forms(replaced, forms);
        result += replaced;
        text = std::string_view(url.end(), text.end());
    }
    return result;
}

/// Whether a value names the user or a directory above the user's files. It stands in many harmless texts.
bool is_name_of_user(std::string_view value) {
    for (const auto name : VariableList{"USER", "LOGNAME"})
        if (variable(name) == value) return true;
    const std::filesystem::path home = variable("HOME");
    return home == value || std::ranges::find(home, std::filesystem::path(value)) != home.end();
}

/// Needed because output is redacted line by line.
void remember_lines(std::string_view secret) {
    for (const auto line : split_lines(secret))
        // A shorter line may be any word: "done", "},".
        if (line.size() > longest_word && line.size() < secret.size()) remember_secret(line);
}

bool is_secret_option(std::string_view word) {
    return word.starts_with('-') && word.find('=') == none && is_secret_name(word);
}

} // namespace

bool has_only_braced_variables(std::string_view text) {
    for (auto at = text.find('$'); at != none; at = text.find('$', at + 1))
        if (!text.substr(at).starts_with("${")) return false;
    return true;
}

std::string redacted(std::string_view text) {
    std::string result;
    std::size_t done = 0;
    for (const auto& span : Finder(text).spans()) {
        result += text.substr(done, span.begin - done);
        result += redaction_mark;
        done = span.end;
    }
    result += text.substr(done);
    auto& all = known();
    const std::lock_guard lock(all.mutex);
    result = with_forms_replaced_in_urls(result, all.in_urls);
    replace_forms(result, all.anywhere);
    return result;
}

std::string redacted_command(const std::vector<std::string>& words) {
    std::string line;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_value = i > 0 && is_secret_option(words[i - 1]) && !says_nothing(words[i]);
        const auto before =
            i > 0 && (words[i - 1] == "-u" || words[i - 1] == "--user") ? words[i - 1] + " " : "";
        const auto shown =
            is_value ? std::string(redaction_mark) : redacted(before + words[i]).substr(before.size());
        // The mark's asterisks need no quotes.
        line += (i > 0 ? " " : "") + (is_value ? shown : shell_quoted(shown));
    }
    return line;
}

void remember_secret(std::string_view secret) {
    if (secret.size() < shortest_known || is_placeholder(secret)) return;
    forbid_core_dumps();
    remember_lines(secret);
    auto& all = known();
    const std::lock_guard lock(all.mutex);
    for (auto& form : forms_of(secret))
        if (form.size() >= shortest_known) {
            all.in_urls.emplace(form, redaction_mark);
            all.anywhere.emplace(std::move(form), redaction_mark);
        }
}

void remember_variable(std::string_view name, std::string_view value) {
    // A shorter value is a word, such as "cu121", that stands in much harmless text.
    if (value.size() <= longest_word || is_name_of_user(value)) return;
    forbid_core_dumps();
    if (is_secret_name(name)) remember_secret(value);
    auto& all = known();
    const std::lock_guard lock(all.mutex);
    const auto mark = "${" + std::string(name) + "}";
    // pip records URLs without logins.
    for (const auto& form : {std::string(value), percent_encoded(value), percent_encoded(value, "/"),
                             url_encoded(value), without_credentials(value)})
        all.in_urls.insert_or_assign(form, mark);
}

void remember_login(std::string_view user, std::string_view password) {
    if (password.empty()) return;
    remember_secret(password);
    remember_secret(base64(std::string(user) + ":" + std::string(password)));
}

void remember_secrets_in(std::string_view text) {
    for (const auto secret : Finder(text).known())
        remember_secret(secret);
}

void remember_secrets_of(const std::map<std::string, std::string>& environment) {
    for (const auto& [name, value] : environment) {
        remember_secrets_in(is_address_name(name) ? name + "=" + value : value);
        // The variable may name a file that holds the secret.
        std::error_code ignored;
        const bool is_path = value.starts_with('/') && std::filesystem::exists(value, ignored);
        if (is_secret_name(name) && !is_path) remember_secret(value);
    }
}

void remember_secrets_of(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0 && is_secret_option(words[i - 1])) remember_secret(words[i]);
        remember_secrets_in(i > 0 && words[i - 1].starts_with('-') ? words[i - 1] + " " + words[i]
                                                                   : words[i]);
    }
}

void remember_secrets_of_netrc(std::string_view text) {
    std::string user;
    std::string before;
    for (auto& word : words_in(text, " \t\r\n")) {
        if (word.size() > 1 && word.front() == '"' && word.back() == '"')
            word = word.substr(1, word.size() - 2);
        if (before == "login") user = word;
        if (before == "password") remember_login(user, word);
        before = before == "login" || before == "password" ? "" : word;
    }
}

void hide_secrets_of_process(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const bool is_value = is_secret_option(argv[i - 1]);
        const auto before = std::string(argv[i - 1]).starts_with('-') ? std::string(argv[i - 1]) + " " : "";
        const auto whole = before + std::string(word);
        if (is_value || redacted(whole) != whole) std::fill_n(argv[i], word.size(), '*');
    }
}

} // namespace containerize

// URLs with and without logins: no part of a password may remain.
#include "core/url.h"

#include "harness.h"
#include "util/redact.h"

#include <string>

using namespace containerize;

namespace {

/// Excludes passwords with characters that end a URL in a text or begin another one.
bool can_be_told(std::string_view password) {
    return password.size() < 1000 && !password.starts_with("//") && password.find("://") == password.npos &&
           std::ranges::none_of(password, [](unsigned char c) {
               return c <= ' ' || c == 0x7f ||
                      std::string_view("\"'`<>").find(static_cast<char>(c)) != std::string_view::npos;
           });
}

const std::string plain = "https://repo.example.org/channel/x";

std::string url_with(std::string_view password) {
    return "https://user:" + std::string(password) + "@repo.example.org/channel/x";
}

void check_removal(std::string_view password) {
    const auto url = url_with(password);
    fuzz::require(without_credentials(url) == plain);
    fuzz::require(without_credentials_within("-i " + url + " x") == "-i " + plain + " x");
    fuzz::require(url_host(url) == "repo.example.org");
}

void check_redaction(std::string_view end) {
    // The prefix excludes placeholders such as "$PASSWORD", which are no passwords.
    const auto password = "7x" + std::string(end);
    const auto hidden = redacted(url_with(password));
    // What follows a name that suggests a secret is hidden as well, as far as it reaches.
    const bool has_assignment = password.find_first_of("=:") != std::string::npos;
    fuzz::require(has_assignment ? hidden.find(password) == std::string::npos
                                 : hidden == "https://****@repo.example.org/channel/x");
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    const auto parts = fuzz::parts_of(text, 2);
    const auto bare = without_credentials(text);
    fuzz::require(bare.size() <= text.size());
    const bool has_another = text.find("://", text.find("://") + 1) != text.npos; // in its path
    if (text.find("://") != text.npos && !has_another) fuzz::require(without_credentials(bare) == bare);
    [[maybe_unused]] const auto line = without_credentials_within(text);
    [[maybe_unused]] const auto hidden = redacted(text);
    [[maybe_unused]] const auto host = url_host(text);
    [[maybe_unused]] const bool is_place = is_place_of(parts[0], parts[1]);
    fuzz::require(url_encoded(url_encoded(text)) == url_encoded(text));
    if (text.find('\0') == text.npos)
        fuzz::require(file_url_path(file_url("/" + std::string(text))) == "/" + std::string(text));
    if (can_be_told(text)) {
        check_removal(text);
        check_redaction(text);
    }
    return 0;
}

#include "../good.h"
#include "../http_server.h"
#include "core/interrupt.h"
#include "http/failure.h"
#include "http/http.h"
#include "util/digest.h"

#include <algorithm>
#include <csignal>
#include <random>
#include <regex>

#include <gtest/gtest.h>

namespace containerize {

namespace {

using http::Request;
using http::Settings;
using test::HttpServer;
using test::TemporaryDirectory;

/// Incompressible, so that misplaced pieces are noticed.
std::string noise(std::size_t size) {
    std::mt19937 random(7);
    std::string text(size, '\0');
    for (char& c : text)
        c = static_cast<char>(random());
    return text;
}

Settings quick(unsigned retries = Settings().retries) {
    Settings settings;
    settings.first_pause = std::chrono::milliseconds(1);
    settings.retries = retries;
    return settings;
}

class Http : public testing::Test {
protected:
    Http() : server(directory / "served"), data(noise(1'000'000)) {
        directory.write("served/data", data);
        directory.write("served/small", "content");
        fs::create_directory(directory / "out");
    }
    [[nodiscard]] Request request(const std::string& path) const {
        Request request;
        request.urls = {server.url(path)};
        return request;
    }
    /// Downloads to a file and verifies its digest.
    [[nodiscard]] Request download(const std::string& path) const {
        auto result = request(path);
        result.file = directory / "out/file";
        result.sha256 = sha256(data);
        return result;
    }
    [[nodiscard]] std::string message(const Request& request, const Settings& settings = quick()) const {
        const auto result = http::fetch(request, settings);
        if (result) return "no error";
        // The port differs in each run.
        return std::regex_replace(to_string(result.error()), std::regex(server.port()), "PORT");
    }
    [[nodiscard]] std::string file() const { return read_file(directory / "out/file").value(); }

    TemporaryDirectory directory;
    HttpServer server;
    std::string data;
};

} // namespace

TEST_F(Http, ToMemory) {
    const auto response = test::good(http::fetch(request("small"), quick()));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "content");
    EXPECT_EQ(response.sha256, sha256("content"));
    EXPECT_EQ(response.headers.at("content-length"), "7");
    EXPECT_EQ(response.url, server.url("small"));
}

TEST_F(Http, ToFileWithItsDigest) {
    auto wanted = download("data");
    wanted.size = data.size();
    ASSERT_TRUE(http::fetch(wanted, quick()));
    EXPECT_EQ(file(), data);
}

TEST_F(Http, ManyAtOnceInTheirOrder) {
    std::vector<Request> requests;
    for (int i = 0; i < 40; ++i)
        requests.push_back(request(i % 3 == 2 ? "missing" : i % 3 == 1 ? "small" : "slow/1/small"));
    const auto start = std::chrono::steady_clock::now();
    std::size_t finished = 0;
    const auto results = http::fetch(requests, quick(), {.finished = [&](auto, const auto&) -> Status {
                                         ++finished;
                                         return {};
                                     }});
    ASSERT_EQ(results.size(), requests.size());
    for (std::size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(results[i].has_value(), i % 3 != 2);
    EXPECT_EQ(finished, requests.size());
    EXPECT_EQ(server.seen().size(), requests.size());
    // 14 requests take a second each; eight run at a time.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Http, NotModified) {
    const auto first = test::good(http::fetch(request("small"), quick()));
    auto again = request("small");
    again.etag = first.headers.at("etag");
    const auto second = test::good(http::fetch(again, quick()));
    EXPECT_EQ(second.status, 304);
    EXPECT_EQ(server.seen("small")[1].if_none_match, again.etag);
    again.etag = "\"other\"";
    EXPECT_EQ(http::fetch(again, quick())->status, 200);
}

TEST_F(Http, BrokenTransferGoesOnWhereItBroke) {
    ASSERT_TRUE(http::fetch(download("cut/3/data"), quick()));
    EXPECT_EQ(file(), data);
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 4U);
    EXPECT_EQ(seen[0].range, "");
    EXPECT_EQ(seen[1].range, "bytes=100000-");
    EXPECT_EQ(seen[3].range, "bytes=300000-");
    EXPECT_EQ(seen[3].if_range, "\"" + sha256(data).substr(0, 16) + "\"");
}

TEST_F(Http, ProgressRenewsPatience) {
    auto settings = quick(1);
    ASSERT_TRUE(http::fetch(download("cut/8/data"), settings));
    EXPECT_EQ(file(), data);
}

TEST_F(Http, ServerWithoutRangesBeginsAnew) {
    ASSERT_TRUE(http::fetch(download("cutnorange/2/data"), quick()));
    EXPECT_EQ(file(), data);
    auto without_digest = request("cutnorange/2/data?again");
    without_digest.file = directory / "out/file";
    ASSERT_TRUE(http::fetch(without_digest, quick()));
    EXPECT_EQ(file(), data);
}

TEST_F(Http, WrongRangeIsNotBelieved) {
    auto settings = quick(1);
    EXPECT_EQ(
        message(download("wrongrange/data"), settings),
        "http://127.0.0.1:PORT/wrongrange/data: cannot download: the connection broke: end of response with "
        "900000 bytes missing (tried 2 times)");
    EXPECT_EQ(server.seen().size(), 3U);
}

TEST_F(Http, EarlierRunsAreResumed) {
    directory.write("out/file", data.substr(0, 400'000));
    ASSERT_TRUE(http::fetch(download("data"), quick()));
    EXPECT_EQ(file(), data);
    EXPECT_EQ(server.seen().at(0).range, "bytes=400000-");
    // The file is complete, so there is no request.
    auto complete = download("data");
    complete.size = data.size();
    ASSERT_TRUE(http::fetch(complete, quick()));
    EXPECT_EQ(server.seen().size(), 1U);
    // The existing file is not a part of it: noticed at the end, and downloaded again without an error.
    directory.write("out/file", "something else");
    ASSERT_TRUE(http::fetch(download("data"), quick()));
    EXPECT_EQ(file(), data);
    EXPECT_EQ(server.seen().size(), 3U);
    // Without a digest this would go unnoticed.
    directory.write("out/file", "something else");
    auto unverified = download("data");
    unverified.sha256.clear();
    ASSERT_TRUE(http::fetch(unverified, quick()));
    EXPECT_EQ(file(), data);
    EXPECT_EQ(server.seen().back().range, "");
    // The file is longer than it should be.
    directory.write("out/file", data + "more");
    ASSERT_TRUE(http::fetch(download("data"), quick()));
    EXPECT_EQ(file(), data);
}

TEST_F(Http, WhatPassesIsTriedAgain) {
    for (const char* path :
         {"flaky/503/2/small", "flaky/429/2/small", "flaky/408/2/small", "flaky/500/4/small"}) {
        const auto response = http::fetch(request(path), quick());
        ASSERT_TRUE(response) << path << to_string(response.error());
        EXPECT_EQ(response->body, "content");
    }
    EXPECT_EQ(server.seen("flaky/503/2/small").size(), 3U);
    EXPECT_EQ(server.seen("flaky/500/4/small").size(), 5U);
    EXPECT_EQ(message(request("status/503")), "http://127.0.0.1:PORT/status/503: cannot download: the server "
                                              "answered 503 Service Unavailable (tried "
                                              "5 times)");
    EXPECT_EQ(server.seen("status/503").size(), 5U);
    EXPECT_EQ(message(request("status/429")),
              "http://127.0.0.1:PORT/status/429: cannot download: the server answered 429 Too Many Requests "
              "(tried 5 times)\nIt limits the requests from one address. Try again later.");
}

TEST_F(Http, WhatDoesNotPassIsNot) {
    EXPECT_EQ(message(request("missing")),
              "http://127.0.0.1:PORT/missing: cannot download: the server does not have this file (404 Not "
              "Found)\nCheck the address.");
    EXPECT_EQ(message(request("status/403")),
              "http://127.0.0.1:PORT/status/403: cannot download: the server refuses access (403 "
              "Forbidden)\nCheck the login for 127.0.0.1:PORT: ~/.netrc.");
    EXPECT_EQ(
        message(request("status/401")).substr(0, 95),
        "http://127.0.0.1:PORT/status/401: cannot download: the server requires a login (401 Unauthorize");
    EXPECT_EQ(message(request("status/501")),
              "http://127.0.0.1:PORT/status/501: cannot download: the server answered 501");
    EXPECT_EQ(server.seen().size(), 4U);
}

TEST_F(Http, StatusesThatAreAnswers) {
    auto asked = request("missing");
    asked.answers = {404};
    const auto response = test::good(http::fetch(asked, quick()));
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.body, "");
}

TEST_F(Http, WrongContentIsNotUsed) {
    ASSERT_TRUE(http::fetch(download("wrong/1/data"), quick()));
    EXPECT_EQ(file(), data);
    auto bad = data;
    bad.back() = '#';
    EXPECT_EQ(message(download("wrong/9/data")),
              "http://127.0.0.1:PORT/wrong/9/data: cannot use the download: its checksum is wrong: expected "
              "sha256 " +
                  sha256(data) + ", got sha256 " + sha256(bad) +
                  "\nThe file was downloaded twice. Either the server's files do not match their checksums, "
                  "or something "
                  "on the way changes them.");
    EXPECT_EQ(server.seen("wrong/9/data").size(), 2U);
    EXPECT_EQ(file(), "");

    auto by_md5 = download("data");
    by_md5.sha256.clear();
    by_md5.md5 = std::string(32, '0');
    Md5 digest;
    digest.update(data.data(), data.size());
    EXPECT_TRUE(message(by_md5).contains("expected md5 00000000000000000000000000000000, got md5 " +
                                         digest.finish()));

    auto by_size = request("small");
    by_size.size = 8;
    EXPECT_TRUE(message(by_size).contains("it has 7 bytes, expected 8"));
    by_size.size = 6;
    EXPECT_TRUE(message(by_size).contains("the file is larger than expected"));
}

TEST_F(Http, MirrorsAreTriedInTurn) {
    auto asked = download("status/503");
    asked.urls = {server.url("status/503"), server.url("missing"), server.url("wrong/9/data"),
                  server.url("data")};
    const auto response = test::good(http::fetch(asked, quick()));
    EXPECT_EQ(file(), data);
    EXPECT_EQ(response.url, server.url("data"));
    EXPECT_EQ(server.seen().size(), 4U);

    asked.urls = {server.url("missing"), server.url("status/403")};
    EXPECT_TRUE(
        message(asked).contains("\nThis address failed, too: http://127.0.0.1:PORT/status/403: the server "
                                "refuses access (403 Forbidden)"));
}

TEST_F(Http, AnswersLeadToFurtherRequests) {
    std::vector<std::string> next = {"data", "missing"};
    std::vector<std::string> ended;
    const http::Observer observer{
        .progress = {},
        .cancelled = {},
        .finished = [&](std::size_t index, const Result<http::Response>& result) -> Status {
            ended.push_back(std::to_string(index) + (result ? "" : " failed"));
            return {};
        },
        .more =
            [&] {
                std::vector<Request> requests;
                if (!next.empty()) requests.push_back(request(next.front()));
                if (!next.empty()) next.erase(next.begin());
                return requests;
            }};
    const auto results = http::fetch({request("small")}, quick(), observer);
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[0]->body, "content");
    EXPECT_EQ(results[1]->body, data);
    EXPECT_FALSE(results[2]);
    EXPECT_EQ(ended, (std::vector<std::string>{"0", "1", "2 failed"}));
}

TEST_F(Http, LimitsAreKept) {
    auto huge = request("huge");
    huge.limit = 1'000'000;
    EXPECT_EQ(message(huge), "http://127.0.0.1:PORT/huge: cannot download: it is larger than 1.0 MB");
    huge.file = directory / "out/file";
    EXPECT_EQ(message(huge), "http://127.0.0.1:PORT/huge: cannot download: it is larger than 1.0 MB");
    EXPECT_LE(fs::file_size(huge.file), huge.limit);
    // In memory there is always a limit. The announced size is checked before the first byte.
    auto said = request("data");
    said.limit = 999'999;
    EXPECT_EQ(message(said), "http://127.0.0.1:PORT/data: cannot download: it is larger than 1.0 MB");
}

TEST_F(Http, LyingLength) {
    auto settings = quick(1);
    EXPECT_EQ(message(request("lying/5/small"), settings),
              "http://127.0.0.1:PORT/lying/5/small: cannot download: the connection broke: end of response "
              "with 5 bytes missing (tried 2 times)");
    auto shorter = download("lying/-5/data");
    const auto text = message(shorter, settings);
    EXPECT_TRUE(text.contains("its checksum is wrong")) << text;
}

TEST_F(Http, SlowStartIsWaitedForAndStallIsNot) {
    EXPECT_EQ(http::fetch(request("slow/1.2/small"), quick())->body, "content");
    auto settings = quick(0);
    settings.stall_timeout = std::chrono::seconds(1);
    EXPECT_EQ(message(request("stall"), settings),
              "http://127.0.0.1:PORT/stall: cannot download: no data arrived for 1 s\n"
              "The server or the network is very slow.");
    settings.advice.patience = "PATIENCE";
    EXPECT_TRUE(message(request("stall"), settings).ends_with("very slow. Set a longer time with PATIENCE."));
}

TEST_F(Http, CredentialsGoWhereTheyBelong) {
    auto settings = quick();
    settings.logins = {
        {.url = "127.0.0.1:" + server.port(), .user = "wrong", .password = "x", .bearer = {}},
        {.url = "127.0.0.1:" + server.port() + "/auth", .user = "user", .password = "s3cret", .bearer = {}},
        {.url = "127.0.0.1:" + server.port() + "/au", .user = "no", .password = "no", .bearer = {}}};
    EXPECT_EQ(http::fetch(request("auth/small"), settings)->body, "content");
    auto inside = request("auth/small");
    inside.urls = {"http://user:s3cret@127.0.0.1:" + server.port() + "/auth/small"};
    const auto response = test::good(http::fetch(inside, quick()));
    EXPECT_EQ(response.url, server.url("auth/small"));
    inside.urls = {"http://user:hunter2@127.0.0.1:" + server.port() + "/t/a-token/auth/small?key=hidden"};
    const auto refused = message(inside);
    EXPECT_EQ(refused.substr(0, 47), "http://127.0.0.1:PORT/auth/small: cannot downlo");
    for (const char* secret : {"hunter2", "user:", "a-token", "hidden"})
        EXPECT_FALSE(refused.contains(secret)) << refused;
}

TEST_F(Http, OtherHostsGetNoCredentials) {
    auto settings = quick();
    settings.logins = {
        {.url = "127.0.0.1:" + server.port(), .user = "user", .password = "s3cret", .bearer = {}}};
    ASSERT_TRUE(http::fetch(request("redirect/localhost/small"), settings));
    EXPECT_NE(server.seen("redirect/localhost/small").at(0).authorization, "");
    EXPECT_EQ(server.seen("small").at(0).authorization, "");
    // A redirect to the same host keeps them.
    ASSERT_TRUE(http::fetch(request("redirect/127.0.0.1/auth/small"), settings));
    settings.logins = {{.url = "127.0.0.1:" + server.port(), .user = {}, .password = {}, .bearer = "to-ken"}};
    ASSERT_TRUE(http::fetch(request("redirect/localhost/small"), settings));
    EXPECT_EQ(server.seen("redirect/localhost/small").at(1).authorization, "Bearer to-ken");
    EXPECT_EQ(server.seen("small").at(1).authorization, "");
    // libcurl would keep the session's token.
    settings.logins = {{.url = "127.0.0.1:" + server.port(),
                        .user = "key",
                        .password = "s3cret",
                        .signature = "aws:amz:eu-north-1:s3",
                        .session = "session-token"}};
    const auto signed_request = http::fetch(request("redirect/localhost/small"), settings);
    ASSERT_FALSE(signed_request);
    EXPECT_TRUE(to_string(signed_request.error()).contains("answered 302"))
        << to_string(signed_request.error());
    const auto redirected = message(request("redirect/localhost/missing"));
    EXPECT_TRUE(redirected.contains("(404 Not Found) (redirected to localhost:PORT)\n")) << redirected;
}

// Clouds serve secrets of a machine there: the user may request them, but no server may redirect to them.
TEST_F(Http, ServersCannotSendToLinkLocalAddresses) {
    const std::string refused = "the server refers to a link-local address, which is never public";
    for (const char* address : {"169.254.0.1", "[fe80::1]", "[::ffff:169.254.0.1]"})
        EXPECT_TRUE(message(request("redirect/" + std::string(address) + "/small")).contains(refused))
            << address;
    auto named = request("small");
    named.urls = {"http://169.254.0.1:1/"};
    named.named_by_server = true;
    EXPECT_TRUE(message(named).contains(refused));
    // There is a proxy, but not for this server.
    auto settings = quick();
    settings.proxies = {{"http", "http://127.0.0.1:1"}};
    setenv("no_proxy", "*", 1);
    EXPECT_TRUE(message(named, settings).contains(refused));
    unsetenv("no_proxy");
}

TEST_F(Http, EndsWhenItIsCancelled) {
    auto results = http::fetch({request("stall")}, quick(), {.cancelled = [] { return true; }});
    ASSERT_FALSE(results.at(0));
    EXPECT_EQ(results.at(0).error().what, "the download was cancelled");
}

TEST_F(Http, RedirectsEnd) {
    EXPECT_EQ(message(request("loop")), "http://127.0.0.1:PORT/loop: cannot download: too many redirects");
    EXPECT_EQ(server.seen().size(), 11U);
}

TEST_F(Http, Netrc) {
    const auto netrc = directory.write("netrc", "machine 127.0.0.1 login user password s3cret\n");
    setenv("NETRC", netrc.c_str(), 1);
    const auto response = http::fetch(request("auth/small"), quick());
    unsetenv("NETRC");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->body, "content");
}

TEST_F(Http, Files) {
    auto local = download("data");
    local.urls = {"file://" + (directory / "served/data").string()};
    ASSERT_TRUE(http::fetch(local, quick()));
    EXPECT_EQ(file(), data);
    local.urls = {"file:///nowhere/x"};
    EXPECT_EQ(message(local),
              "file:///nowhere/x: cannot download: the file does not exist or cannot be read");
}

TEST_F(Http, ServersThatAreNotThere) {
    auto settings = quick(1);
    Request asked;
    asked.urls = {"http://127.0.0.1:1/x"};
    const auto refused = message(asked, settings);
    EXPECT_TRUE(refused.starts_with("http://127.0.0.1:1/x: cannot download: connection failed: ")) << refused;
    EXPECT_TRUE(refused.contains("(tried 2 times)\nCheck the address, and whether this machine can reach it"))
        << refused;
    asked.urls = {"http://no-such-host.invalid/x"};
    EXPECT_EQ(message(asked, settings).substr(0, 113), "http://no-such-host.invalid/x: cannot download: the "
                                                       "name no-such-host.invalid cannot be resolved (tried "
                                                       "2 times)\n");
    asked.urls = {"gopher://x/y"};
    EXPECT_TRUE(message(asked, settings).contains("the URL is not an http, https or file URL"));
}

TEST_F(Http, Proxies) {
    auto settings = quick(0);
    settings.proxies = {{"http", "http://me:pass@127.0.0.1:" + server.port()}};
    Request asked;
    asked.urls = {"http://example.invalid/x"};
    const std::string expected =
        "cannot download: the proxy requires a login (407 Proxy Authentication Required)\nThe proxy is "
        "http://127.0.0.1:PORT. Write it as http://USER:PASSWORD@HOST:PORT in https_proxy.";
    EXPECT_EQ(message(asked, settings), "http://example.invalid/x: " + expected);
    EXPECT_EQ(server.seen().at(0).path, "http://example.invalid/x");
    settings.proxies = {{"https://other.invalid", "http://127.0.0.1:1"},
                        {"https", "http://127.0.0.1:" + server.port()}};
    asked.urls = {"https://example.invalid/x"};
    EXPECT_EQ(message(asked, settings), "https://example.invalid/x: " + expected);
    EXPECT_EQ(server.seen().at(1).method, "CONNECT");
    settings.proxies = {{"all", "http://no-such-proxy.invalid:8080"}};
    EXPECT_EQ(message(asked, settings),
              "https://example.invalid/x: cannot download: the proxy's name cannot be resolved\nThe proxy is "
              "http://no-such-proxy.invalid:8080 (from https_proxy).");
    settings.proxies = {{"all", "me:pass@no-such-proxy.invalid:8080"}};
    EXPECT_TRUE(message(asked, settings).contains("The proxy is http://no-such-proxy.invalid:8080 (from"));
}

// What uses these downloads says where its users set something.
TEST(HttpFailure, AdviceIsInTheWordsOfTheCaller) {
    Settings settings;
    settings.advice = {.address = "ADDRESS",
                       .login = "LOGIN",
                       .proxy = "PROXY",
                       .certificates = "CERTIFICATES",
                       .client_certificate = "CLIENT",
                       .checksums = "CHECKSUMS",
                       .patience = "PATIENCE",
                       .no_verification = "UNVERIFIED"};
    const Settings plain;
    const auto hint = [](const Settings& of, CURLcode code, long status, const std::string& proxy) {
        http::Attempt attempt;
        attempt.proxy = proxy;
        attempt.connect_time = 1;
        attempt.settings = &of;
        return (status != 0 ? http::explain_status(status, attempt) : http::explain_code(code, attempt)).hint;
    };
    std::string all;
    for (const std::string proxy : {"", "http://proxy"})
        for (int number = 1; number < 600; ++number) {
            const auto code = number < CURL_LAST ? static_cast<CURLcode>(number) : CURLE_COULDNT_CONNECT;
            all += hint(settings, code, number, proxy) + hint(settings, code, 0, proxy);
            for (const auto& said : {hint(plain, code, number, proxy), hint(plain, code, 0, proxy)})
                EXPECT_FALSE(said.contains("conda") || said.contains("channel") || said.contains("mamba"))
                    << said;
        }
    for (const char* word : {"ADDRESS", "LOGIN", "PROXY", "CERTIFICATES", "CLIENT", "PATIENCE"})
        EXPECT_TRUE(all.contains(word)) << word;
}

TEST_F(Http, FullDisk) {
    auto asked = request("data");
    asked.file = "/dev/full";
    EXPECT_EQ(message(asked), "/dev/full: cannot write the download: it is not a file");
    asked.file = directory / "nowhere/file";
    EXPECT_EQ(message(asked), asked.file.string() + ": cannot write the download: No such file or directory");
}

TEST_F(Http, AnErrorOfTheObserverEndsAll) {
    std::vector<Request> requests(20, request("slow/0.2/small"));
    requests.front() = request("missing");
    const auto results = http::fetch(requests, quick(), {.finished = [](auto, const auto& result) -> Status {
                                         if (result) return {};
                                         return fail(Error(result.error()));
                                     }});
    std::size_t failed = 0;
    for (const auto& result : results)
        if (!result) ++failed;
    EXPECT_EQ(failed, requests.size());
    EXPECT_LE(server.seen().size(), 9U);
}

TEST_F(Http, AnInterruptEndsAll) {
    const pid_t child = fork();
    if (child == 0) {
        catch_interrupts();
        const auto results =
            http::fetch({request("slow/20/small"), request("stall"), request("status/503")}, Settings());
        const bool all = std::ranges::all_of(results, [](const auto& result) {
            return !result && to_string(result.error()) == "interrupted";
        });
        _exit(all ? 7 : 8);
    }
    // All have arrived; "status/503" is requested again after a pause.
    const bool arrived = test::happens([&] { return server.seen().size() >= 3; });
    EXPECT_TRUE(arrived);
    kill(child, arrived ? SIGINT : SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(Http, ProgressTellsOfAll) {
    std::vector<Request> requests;
    for (int i = 0; i < 3; ++i) {
        requests.push_back(request("data?" + std::to_string(i)));
        requests.back().size = data.size();
    }
    http::Progress last;
    const auto results = http::fetch(requests, quick(), {.progress = [&](const auto& now) { last = now; }});
    EXPECT_TRUE(results[0] && results[1] && results[2]);
    EXPECT_EQ(last.total, 3 * data.size());
}

TEST(HttpTls, UnknownAuthority) {
    const TemporaryDirectory directory;
    const auto pem = directory / "server.pem";
    const auto command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
                         "subjectAltName=DNS:localhost -keyout " +
                         pem.string() + ".key -out " + pem.string() + ".crt 2>/dev/null && cat " +
                         pem.string() + ".key " + pem.string() + ".crt > " + pem.string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    directory.write("served/small", "content");
    const HttpServer server(directory / "served", pem);
    Request asked;
    asked.urls = {server.url("small", "localhost")};
    const auto text = to_string(test::error_of(http::fetch(asked, quick())));
    EXPECT_TRUE(text.contains("cannot download: the server's identity cannot be verified: ")) << text;
    EXPECT_TRUE(text.contains("set its file with\nSSL_CERT_FILE.")) << text;
    EXPECT_EQ(server.seen().size(), 0U);

    auto settings = quick();
    settings.ca = pem.string() + ".crt";
    const auto verified = test::good(http::fetch(asked, settings));
    EXPECT_EQ(verified.body, "content");
    // The name of the host is verified as well.
    asked.urls = {server.url("small", "127.0.0.1")};
    EXPECT_FALSE(http::fetch(asked, settings));
    settings.verify_tls = false;
    settings.advice.no_verification = "ssl_verify: false";
    testing::internal::CaptureStderr();
    EXPECT_TRUE(http::fetch(asked, settings));
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "warning: server certificates are not verified (ssl_verify: false), so downloads can be "
              "changed on the way\n");
    // From an encrypted address to an unencrypted one.
    settings.ca = pem.string() + ".crt";
    asked.urls = {server.url("redirect/localhost/small", "localhost")};
    const auto downgraded = test::error_of(http::fetch(asked, settings));
    EXPECT_TRUE(to_string(downgraded).contains("an https URL redirects to an unencrypted one"))
        << to_string(downgraded);
}

} // namespace containerize

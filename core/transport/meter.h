// SPDX-License-Identifier: Apache-2.0
// What the requests to API servers cost, by the names that client-go has for it:
// rest_client_requests_total{code,method,host} and
// rest_client_request_duration_seconds{verb,host}. Every attempt counts by itself, the code of one
// without an answer is "<error>", and a watch lasts until its head has arrived. Lives on its loop's
// thread and keeps the series that it has touched until it is freed.
#pragma once

struct mw_meter;

struct mw_meter *mw_meter_new(void);
void mw_meter_free(struct mw_meter *m);  // NULL is fine
// One attempt has ended, or the head of a watch has arrived; status 0: there was no answer.
void mw_meter_count(struct mw_meter *m, const char *method, const char *host, int status,
                    double seconds);

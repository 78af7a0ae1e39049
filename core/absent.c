// SPDX-License-Identifier: Apache-2.0
// Stand-ins for libraries that libcurl's archive asks for and we do not have: part of the program
// when libcurl is, never of spec/unit's library (CMakeLists.txt). Debian builds libcurl for every
// protocol; we speak HTTP and HTTPS (easy.c), and to map, relocate and set up the two dozen
// libraries of the others took a quarter of a start. What was read of libcurl 7.88, by group:
//
//   LDAP, RTMP, SSH   Only their protocols' handlers call these; but libssh2_init is called with
//                     libcurl's own start.
//   GSS               Of Kerberos. HTTP has it with CURLAUTH_NEGOTIATE, which is never set, and
//                     SOCKS5 unless told otherwise, which it is. What ends a connection frees
//                     only what there is.
//   PSL               Of cookies, which are never turned on.
//   IDN               For a host name that is not ASCII. That of HTTPS_PROXY gets so far, and
//                     libcurl refuses it when there is no libidn2.
//   Brotli, zstd      CURLOPT_ACCEPT_ENCODING is never set, but a server may say
//                     Transfer-Encoding, whatever was asked for: it gets a decoder that takes no
//                     byte, and its answer is refused.
//
// The rest aborts with its name: it is our mistake when that happens, nothing from outside leads
// there.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// A library that is loaded later and brings its own, as those of name services may, finds none of
// these.
#pragma GCC visibility push(hidden)

#define ABSENT_MAP(X)                         \
  X(gss_delete_sec_context)                   \
  X(gss_display_name)                         \
  X(gss_display_status)                       \
  X(gss_import_name)                          \
  X(gss_init_sec_context)                     \
  X(gss_inquire_context)                      \
  X(gss_release_buffer)                       \
  X(gss_release_name)                         \
  X(gss_unwrap)                               \
  X(gss_wrap)                                 \
  X(idn2_free)                                \
  X(idn2_lookup_ul)                           \
  X(ber_bvfree)                               \
  X(ber_free)                                 \
  X(ber_memfree)                              \
  X(ber_sockbuf_add_io)                       \
  X(ldap_abandon_ext)                         \
  X(ldap_err2string)                          \
  X(ldap_free_urldesc)                        \
  X(ldap_get_attribute_ber)                   \
  X(ldap_get_dn_ber)                          \
  X(ldap_get_option)                          \
  X(ldap_init_fd)                             \
  X(ldap_memfree)                             \
  X(ldap_msgfree)                             \
  X(ldap_msgtype)                             \
  X(ldap_parse_result)                        \
  X(ldap_parse_sasl_bind_result)              \
  X(ldap_pvt_url_scheme2proto)                \
  X(ldap_result)                              \
  X(ldap_sasl_bind)                           \
  X(ldap_search_ext)                          \
  X(ldap_set_option)                          \
  X(ldap_start_tls)                           \
  X(ldap_unbind_ext)                          \
  X(ldap_url_parse)                           \
  X(psl_builtin)                              \
  X(psl_free)                                 \
  X(psl_is_cookie_domain_acceptable)          \
  X(psl_latest)                               \
  X(RTMP_Alloc)                               \
  X(RTMP_Close)                               \
  X(RTMP_Connect1)                            \
  X(RTMP_ConnectStream)                       \
  X(RTMP_Free)                                \
  X(RTMP_Init)                                \
  X(RTMP_Read)                                \
  X(RTMP_SetBufferMS)                         \
  X(RTMP_SetupURL)                            \
  X(RTMP_Write)                               \
  X(libssh2_agent_connect)                    \
  X(libssh2_agent_disconnect)                 \
  X(libssh2_agent_free)                       \
  X(libssh2_agent_get_identity)               \
  X(libssh2_agent_init)                       \
  X(libssh2_agent_list_identities)            \
  X(libssh2_agent_userauth)                   \
  X(libssh2_channel_free)                     \
  X(libssh2_channel_read_ex)                  \
  X(libssh2_channel_send_eof)                 \
  X(libssh2_channel_wait_closed)              \
  X(libssh2_channel_wait_eof)                 \
  X(libssh2_channel_write_ex)                 \
  X(libssh2_hostkey_hash)                     \
  X(libssh2_knownhost_add)                    \
  X(libssh2_knownhost_checkp)                 \
  X(libssh2_knownhost_del)                    \
  X(libssh2_knownhost_free)                   \
  X(libssh2_knownhost_get)                    \
  X(libssh2_knownhost_init)                   \
  X(libssh2_knownhost_readfile)               \
  X(libssh2_knownhost_writefile)              \
  X(libssh2_scp_recv2)                        \
  X(libssh2_scp_send64)                       \
  X(libssh2_session_abstract)                 \
  X(libssh2_session_block_directions)         \
  X(libssh2_session_callback_set)             \
  X(libssh2_session_disconnect_ex)            \
  X(libssh2_session_flag)                     \
  X(libssh2_session_free)                     \
  X(libssh2_session_handshake)                \
  X(libssh2_session_hostkey)                  \
  X(libssh2_session_init_ex)                  \
  X(libssh2_session_last_errno)               \
  X(libssh2_session_last_error)               \
  X(libssh2_session_method_pref)              \
  X(libssh2_session_set_blocking)             \
  X(libssh2_sftp_close_handle)                \
  X(libssh2_sftp_init)                        \
  X(libssh2_sftp_last_error)                  \
  X(libssh2_sftp_mkdir_ex)                    \
  X(libssh2_sftp_open_ex)                     \
  X(libssh2_sftp_read)                        \
  X(libssh2_sftp_readdir_ex)                  \
  X(libssh2_sftp_rename_ex)                   \
  X(libssh2_sftp_rmdir_ex)                    \
  X(libssh2_sftp_seek64)                      \
  X(libssh2_sftp_shutdown)                    \
  X(libssh2_sftp_stat_ex)                     \
  X(libssh2_sftp_statvfs)                     \
  X(libssh2_sftp_symlink_ex)                  \
  X(libssh2_sftp_unlink_ex)                   \
  X(libssh2_sftp_write)                       \
  X(libssh2_userauth_authenticated)           \
  X(libssh2_userauth_keyboard_interactive_ex) \
  X(libssh2_userauth_list)                    \
  X(libssh2_userauth_password_ex)             \
  X(libssh2_userauth_publickey_fromfile_ex)   \
  X(libssh2_version)

static _Noreturn void absent(const char *name) {
  fprintf(stderr, "moonwatch: libcurl calls %s, which is not part of this program\n", name);
  abort();
}

#define X(name)    \
  void name(void); \
  void name(void) { absent(#name); }
ABSENT_MAP(X)
#undef X

void *GSS_C_NT_HOSTBASED_SERVICE;

int libssh2_init(int flags);
int libssh2_init(int flags) {
  (void)flags;
  return 0;
}

void libssh2_exit(void);
void libssh2_exit(void) {}

// There is no version that is new enough.
const char *idn2_check_version(const char *wanted);
const char *idn2_check_version(const char *wanted) {
  (void)wanted;
  return NULL;
}

// Any address will do: libcurl only hands it back.
static char decoder;

void *BrotliDecoderCreateInstance(void *allocate, void *release, void *ctx);
void *BrotliDecoderCreateInstance(void *allocate, void *release, void *ctx) {
  (void)allocate, (void)release, (void)ctx;
  return &decoder;
}

void BrotliDecoderDestroyInstance(void *d);
void BrotliDecoderDestroyInstance(void *d) { (void)d; }

int BrotliDecoderDecompressStream(void *d, size_t *in, void *from, size_t *out, void *to, void *n);
int BrotliDecoderDecompressStream(void *d, size_t *in, void *from, size_t *out, void *to, void *n) {
  (void)d, (void)in, (void)from, (void)out, (void)to, (void)n;
  return 0;  // an error
}

int BrotliDecoderGetErrorCode(const void *d);
int BrotliDecoderGetErrorCode(const void *d) {
  (void)d;
  return -1;  // of the format
}

void *ZSTD_createDStream(void);
void *ZSTD_createDStream(void) { return &decoder; }

size_t ZSTD_freeDStream(void *d);
size_t ZSTD_freeDStream(void *d) {
  (void)d;
  return 0;
}

size_t ZSTD_decompressStream(void *d, void *out, void *in);
size_t ZSTD_decompressStream(void *d, void *out, void *in) {
  (void)d, (void)out, (void)in;
  return (size_t)-1;  // an error, of no kind in particular
}

unsigned ZSTD_isError(size_t code);
unsigned ZSTD_isError(size_t code) { return code > 0; }

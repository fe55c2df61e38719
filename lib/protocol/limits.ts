/** Sizes and times that both ends of the wire agree on; PROTOCOL.md quotes them. Text lengths are UTF-16 code units. */

/** Largest request body, after decompression. Beyond it: 413 `too_large`. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Largest single record as JSON. Beyond it the record is quarantined. */
export const MAX_RECORD_BYTES = 1024 * 1024;
/**
 * Maximum number of values in a record, counted as commas and opening brackets. Beyond it the record is quarantined,
 * with its objects and lists as JSON text. Bounds processing time: this many names in one object, the slowest case,
 * take 10 ms to read or write. Real agents send a few hundred.
 */
export const MAX_RECORD_VALUES = 20_000;
/**
 * Maximum number of values in a call's arguments served as JSON. Beyond it, they are served as text, because a turn may
 * have many calls.
 */
export const MAX_ARGS_VALUES = 5_000;
/** Deepest nesting of a request body (the body is 1), and of a call's arguments. Beyond it: 400 `malformed`. */
export const MAX_JSON_DEPTH = 64;
/** Maximum number of records in one request. */
export const MAX_RECORDS_PER_REQUEST = 10_000;
/** Maximum number of messages and calls read from the snapshots of one request; the newest count. */
export const MAX_SNAPSHOT_PARTS = 10_000;
/** Maximum number of request openings and ends that ingest derives from one HTTP request. */
export const MAX_DERIVED = 10_000;
/** Longest id (agent, session, producer, message…). */
export const MAX_ID_LENGTH = 256;

/** The last moment a Date can hold, in epoch milliseconds. */
export const MAX_TIME = 8_640_000_000_000_000;

/** Interval of the comment lines that keep an idle stream alive through proxies. */
export const HEARTBEAT_MS = 15_000;
/** Maximum number of topics on one stream. */
export const MAX_TOPICS = 128;
/** `occurredAt` this far from `receivedAt` counts as clock skew. */
export const CLOCK_SKEW_MS = 60_000;

/** Longest message to an agent, as UTF-8. */
export const MAX_MESSAGE_BYTES = 256 * 1024;
/** Bytes of one attachment. */
export const MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024;
/** Attachments of one message, */
export const MAX_MESSAGE_ATTACHMENTS = 8;
/** and their bytes in total. */
export const MAX_MESSAGE_ATTACHMENT_BYTES = 10 * 1024 * 1024;
/** Maximum number of tasks whose results one message carries. */
export const MAX_MESSAGE_RESULTS = 20;
/** Limits of a session's attachments that no message names. */
export const MAX_UNNAMED_ATTACHMENTS = 200;
export const MAX_UNNAMED_ATTACHMENT_BYTES = 100 * 1024 * 1024;
export const ATTACHMENT_KEPT_MS = 24 * 60 * 60_000;
/** Longest reason of an acknowledgement or decision. */
export const MAX_REASON_LENGTH = 4000;
/** Longest excerpt of a message in a pending reply. */
export const MAX_OBLIGATION_TEXT = 2000;
/** Lease of a sent command before it is sent again. */
export const COMMAND_LEASE_MS = 60_000;
/** Expiry of undelivered messages, and of other commands. */
export const MESSAGE_EXPIRY_MS = 7 * 24 * 60 * 60_000;
export const COMMAND_EXPIRY_MS = 10 * 60_000;
/** Expiry of an interrupt or session end, which are meant for current work. */
export const INTERRUPT_EXPIRY_MS = 15_000;
/** Grace after a request's expiry for its runner to report the outcome, before the server records `expired`. */
export const REQUEST_GRACE_MS = 10_000;
/** A runner counts as away if its server instance has not renewed the connection for this long: the instance died. */
export const RUNNER_AWAY_MS = 12_000;
/** Absence of a runner before its sessions show it. Together with RUNNER_AWAY_MS, it stays below 30 s. */
export const RUNNER_GRACE_MS = 12_000;
/** A runner that announced reports every `everyMs` also counts as away after this many missing ones. */
export const MISSED_REPORTS = 2;

/** Kept output of a task in UTF-8 bytes; the newest is kept. */
export const MAX_TASK_OUTPUT_BYTES = 256 * 1024;
/** Maximum number of separate parts of a task's output; the newest are kept. */
export const MAX_OUTPUT_PARTS = 64;

/**
 * Longest message of a log line in UTF-8 bytes. Longer ones are truncated, with a mark that states the missing bytes.
 */
export const MAX_LOG_MESSAGE_BYTES = 64 * 1024;
/** Longest text or regex in a log search. */
export const MAX_LOG_SEARCH_LENGTH = 1000;
/** Largest regex, in steps of its program. A line costs at most this times the examined length. */
export const MAX_REGEX_PROGRAM = 300;
/**
 * Maximum steps of a regex per line: program steps times examined code units. Of a long message only the beginning is
 * examined; a program of up to 61 steps examines all of any line.
 */
export const MAX_REGEX_STEPS = 4_000_000;
/** Default duration of the debug level. */
export const DEBUG_TTL_SECONDS = 15 * 60;
/** Maximum number of items shown of one turn, or of a task's subagent; the newest are shown. */
export const MAX_TURN_ITEMS = 2_000;
/** Maximum text of those items; the newest item is shown whatever its size. */
export const MAX_TURN_TEXT = 4 * 1024 * 1024;
/** Maximum text shown of one message, thought or call's arguments; the beginning is shown. */
export const MAX_ITEM_TEXT = 1024 * 1024;
/** Maximum number of messages, and of tasks, that one event names. */
export const MAX_NAMED = 1_000;
/** Maximum number of sessions that receive an event about the whole agent; the most recently active ones do. */
export const MAX_FAN_OUT = 1_000;
/** Maximum number of open requests that the inbox lists per session, and that ingest can derive. */
export const MAX_PENDING_REQUESTS = 200;
/** Maximum number of open requests that a session counts. */
export const MAX_OPEN_REQUESTS = 1_000;
/** Longest line and longest whole input of a request in a list. */
export const MAX_REQUEST_LINE = 300;
/** Longest title of a request that the inbox does not list yet. */
export const MAX_LATE_TITLE = 200;
/** Maximum number of answers that a request offers. */
export const MAX_OPTIONS = 16;
/** Length of an answer's label, in UTF-16 units. */
export const MAX_OPTION_LABEL = 200;
/** Maximum number of file changes shown of one call. */
export const MAX_EDITS = 200;
/** Maximum number of entries of a plan. */
export const MAX_PLAN_ENTRIES = 500;
/** Time for which a message without further reports counts as on its way. */
export const DELIVERING_MS = 60_000;
/** An agent that reported its work as done and then runs this long counts as resumed. */
export const RESUMED_MS = 5_000;
/** Time for which a `working` report counts after the agent stopped. */
export const WORK_REPORT_MS = 10_000;
/** A status record from an outbox with older unsent records than this may arrive before earlier events. */
export const AHEAD_MS = 2_000;
/** Longest time for which a new session may go unobserved. */
export const STARTING_MS = 60_000;
/** Shortest silence without processor time that counts as no progress… */
export const PROGRESS_MS = 10 * 60_000;
/** …or, if longer, this multiple of the 99th percentile of silences of its kind… */
export const SILENCE_FACTOR = 3;
/** …and at least this long while a call runs and processor time is unknown: a silent command may be working. */
export const CALL_SILENCE_MS = 60 * 60_000;
/** Default time for a turn to take up the result of a task that ended while its agent was idle. */
export const UNDELIVERED_MS = 60_000;
/** Longest title and preview of a session, from its first and newest messages. */
export const MAX_TITLE = 120;
export const MAX_PREVIEW = 240;
/** Longest name that a person gives a session. */
export const MAX_SESSION_NAME = 120;
/** Longest summary of a self-report. */
export const MAX_REPORT_SUMMARY = 160;
/** Shortest silence: signs of life are recorded only every 5 s. */
export const MIN_SILENCE_MS = 15_000;
/** Largest accepted `everyMs`; a larger one counts as this. */
export const MAX_EVERY_MS = 10 * 60_000;
/** Time after which an agent without a command stream counts as silent, unless it announced `everyMs`. */
export const SILENT_MS = 120_000;
/** Longest title, reason or error kept with its subject. */
export const MAX_CAPTION = 4_000;
/** Longest reason for an unsupported command, and longest sentence of a status record. */
export const MAX_REFUSAL_REASON = 500;
export const MAX_SENTENCE = 1_000;
/** Longest text of a message whose role is neither assistant nor user. */
export const MAX_OTHER_TEXT = 512 * 1024;
/** Maximum number of insights kept per agent that are not failures; the newest are kept. */
export const MAX_SIGNALS_KEPT = 1_000;
/** Maximum length of an insight's detail, by default an excerpt of its log line. */
export const MAX_INSIGHT_DETAIL = 2000;
/** Lengths to which adapters truncate descriptions, titles and texts. */
const ADAPTER_LIMITS = [200, 300, 500, 8 * 1024, 16 * 1024, 64 * 1024, 128 * 1024, 256 * 1024];
/** All lengths to which texts are truncated: a text of one of these lengths may end within a secret. */
export const TEXT_LIMITS: readonly number[] = [
  ...ADAPTER_LIMITS,
  ...[MAX_TITLE, MAX_PREVIEW, MAX_REPORT_SUMMARY, MAX_REQUEST_LINE, MAX_LATE_TITLE, MAX_OPTION_LABEL],
  ...[MAX_REFUSAL_REASON, MAX_SENTENCE, MAX_CAPTION, MAX_INSIGHT_DETAIL, MAX_OBLIGATION_TEXT, MAX_OTHER_TEXT],
  MAX_ITEM_TEXT,
];

/** Longest id of an inbox item: it holds two ids as JSON, which escapes some characters as six. */
export const MAX_INBOX_ID = 2 * 6 * MAX_ID_LENGTH + 128;
/** Maximum number of inbox items marked in one request. */
export const MAX_MARKED = 500;
/** Longest name of a person at a browser. */
export const MAX_PERSON_NAME = 60;

/** Activity is counted by the minute and kept for a day. */
export const MINUTE_MS = 60_000;
export const ACTIVITY_KEPT_MINUTES = 24 * 60;

/** Timeout of a webhook call. */
export const WEBHOOK_CALL_MS = 10_000;
/** Lease of a webhook call to one server instance. */
export const WEBHOOK_LEASE_MS = 3 * WEBHOOK_CALL_MS;
/** Age of an inbox item before the webhook reports it, because it may be resolved immediately. */
export const WEBHOOK_SETTLE_MS = 3_000;
/** First and longest delay before a webhook call is retried. */
export const WEBHOOK_FIRST_RETRY_MS = 5_000;
export const WEBHOOK_RETRY_MS = 60 * 60_000;

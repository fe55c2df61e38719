/** Sizes and times that both ends of the wire agree on. PROTOCOL.md quotes them. */

/** Largest request body, after decompression. Beyond it: 413 `too_large`. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Largest single record as JSON. Beyond it the record is quarantined. */
export const MAX_RECORD_BYTES = 1024 * 1024;
/**
 * Most values in a record, counted as commas and opening brackets. Beyond it the record is quarantined, with its
 * objects and lists kept as JSON text. Each value takes time, whatever its size: this many names in one object, the
 * slowest case, are read or written in 10 ms. Real agents send a few hundred.
 */
export const MAX_RECORD_VALUES = 20_000;
/**
 * Values of a call's arguments that are told as JSON. More are told as the text that came: a turn may have many such
 * calls.
 */
export const MAX_ARGS_VALUES = 5_000;
/**
 * Deepest nesting of a request body, the body itself being 1. Beyond it: 400 `malformed`. Of a call's arguments too.
 */
export const MAX_JSON_DEPTH = 64;
/** Most records in one request. */
export const MAX_RECORDS_PER_REQUEST = 10_000;
/** Most messages and calls of snapshots that one request tells: the newest of each for which there is room. */
export const MAX_SNAPSHOT_PARTS = 10_000;
/** Most requests and ends of requests that ingest derives from one request. */
export const MAX_DERIVED = 10_000;
/** Longest id (agent, session, producer, message…), in UTF-16 code units. */
export const MAX_ID_LENGTH = 256;

/** The last moment a Date can hold, in epoch milliseconds. */
export const MAX_TIME = 8_640_000_000_000_000;

/** A comment line keeps an idle stream alive through proxies. */
export const HEARTBEAT_MS = 15_000;
/** Most topics on one stream. */
export const MAX_TOPICS = 128;
/** `occurredAt` this far from `receivedAt` counts as clock skew. */
export const CLOCK_SKEW_MS = 60_000;

/** Longest message to an agent, as UTF-8. */
export const MAX_MESSAGE_BYTES = 256 * 1024;
/** Largest attachment, most of them on one message, and most bytes of those together. */
export const MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024;
export const MAX_MESSAGE_ATTACHMENTS = 8;
export const MAX_MESSAGE_ATTACHMENT_BYTES = 10 * 1024 * 1024;
/** Most tasks whose results one message carries. */
export const MAX_MESSAGE_RESULTS = 20;
/** Most that a session keeps of what no message names, and how long. */
export const MAX_UNNAMED_ATTACHMENTS = 200;
export const MAX_UNNAMED_ATTACHMENT_BYTES = 100 * 1024 * 1024;
export const ATTACHMENT_KEPT_MS = 24 * 60 * 60_000;
/** Longest reason of an acknowledgement or decision, in UTF-16 code units. */
export const MAX_REASON_LENGTH = 4000;
/** How much of a message an obligation quotes, in UTF-16 code units. */
export const MAX_OBLIGATION_TEXT = 2000;
/** How long a sent command is leased to the runner before it is sent again. */
export const COMMAND_LEASE_MS = 60_000;
/** When a message nobody took is given up, and when any other command is. */
export const MESSAGE_EXPIRY_MS = 7 * 24 * 60 * 60_000;
export const COMMAND_EXPIRY_MS = 10 * 60_000;
/** When an interrupt is, or the end of a session: it is meant for what runs now. */
export const INTERRUPT_EXPIRY_MS = 15_000;
/**
 * How long after a request has expired its runner may still say how it ended before the server says that it expired.
 */
export const REQUEST_GRACE_MS = 10_000;
/** A runner whose stream its server has not vouched for in this long is away: that server died without a word. */
export const RUNNER_AWAY_MS = 12_000;
/** How long a runner may be away before its sessions say so. With the term above it is less than 30 s. */
export const RUNNER_GRACE_MS = 12_000;
/** A runner that promised a report every `everyMs` is also away if this many are missing. */
export const MISSED_REPORTS = 2;

/** How much of a task's output is kept, as UTF-8: the newest. */
export const MAX_TASK_OUTPUT_BYTES = 256 * 1024;
/** Most stretches of it with something missing in between: the newest. */
export const MAX_OUTPUT_PARTS = 64;

/** Longest message of a log line, as UTF-8. Beyond it the line is cut, with a mark that says how much. */
export const MAX_LOG_MESSAGE_BYTES = 64 * 1024;
/** Longest text or regex to search a log for, in UTF-16 code units. */
export const MAX_LOG_SEARCH_LENGTH = 1000;
/** Biggest regex, in steps of its program: what a line costs at most is this, times what of it is looked at. */
export const MAX_REGEX_PROGRAM = 300;
/**
 * Most steps of a regex over one line: its program times the UTF-16 code units it looks at, which are the beginning of
 * a long message. A program of up to 61 steps sees the whole of any line.
 */
export const MAX_REGEX_STEPS = 4_000_000;
/** How long debug lasts, unless the request says otherwise. */
export const DEBUG_TTL_SECONDS = 15 * 60;
/** Most items that are shown of one turn, or of what a task's subagent did: the newest. */
export const MAX_TURN_ITEMS = 2_000;
/** Most text of those items, in UTF-16 code units; the newest is shown whatever its size. */
export const MAX_TURN_TEXT = 4 * 1024 * 1024;
/** Most text that is shown of one message, thought or call's arguments, in UTF-16 code units: its beginning. */
export const MAX_ITEM_TEXT = 1024 * 1024;
/** Most messages and most tasks that one event names. */
export const MAX_NAMED = 1_000;
/** Most sessions that are told of something about the agent as a whole: those last heard of. */
export const MAX_FAN_OUT = 1_000;
/** Most open requests of a session that the inbox names, and most of which any is derived. */
export const MAX_PENDING_REQUESTS = 200;
/** Most open requests that a session counts, since it can tell them apart. */
export const MAX_OPEN_REQUESTS = 1_000;
/** How much is kept of the titles of those the inbox does not name yet, in UTF-16 code units. */
export const MAX_LATE_TITLE = 200;
/** Most answers that a request offers, and the longest label of one, in UTF-16 code units. */
export const MAX_OPTIONS = 16;
export const MAX_OPTION_LABEL = 200;
/** Most changes of files that are shown of one call, and most entries of a plan. */
export const MAX_EDITS = 200;
export const MAX_PLAN_ENTRIES = 500;
/** How long a message counts as on its way while nothing is heard of it. */
export const DELIVERING_MS = 60_000;
/** An agent that was done and runs for this long has resumed its work. */
export const RESUMED_MS = 5_000;
/** A still agent is believed to work for this long after it said so. */
export const BELIEVED_MS = 10_000;
/** A status record whose outbox holds something older than this may be told ahead of events that happened before it. */
export const AHEAD_MS = 2_000;
/** How long nothing may be observed of a session. */
export const STARTING_MS = 60_000;
/** Shortest silence, without processor time, that counts as no progress. */
export const PROGRESS_MS = 10 * 60_000;
/** The same as a multiple of the 99th percentile of its kind's silences. */
export const USUAL_SILENCES = 3;
/** Shortest while a call runs whose processor time is unknown: a silent command may be at work. */
export const CALL_SILENCE_MS = 60 * 60_000;
/** Default time for a turn to take up the result of a task that ended while its agent was idle. */
export const UNDELIVERED_MS = 60_000;
/** Longest title and preview of a session (from its first and its newest message), in UTF-16 code units. */
export const MAX_TITLE = 120;
export const MAX_PREVIEW = 240;
/** Longest name that a person gives a session, in UTF-16 code units. */
export const MAX_SESSION_NAME = 120;
/** Longest summary of a self-report, in UTF-16 code units. */
export const MAX_REPORT_SUMMARY = 160;
/** An agent's last sign of life is only noted every 5 s, so anything shorter is no silence. */
export const MIN_SILENCE_MS = 15_000;
/** A promise to report less often than this counts as one to do so this often. */
export const MAX_EVERY_MS = 10 * 60_000;
/** An agent without a stream of commands is silent after this long, unless it promised a record every so often. */
export const SILENT_MS = 120_000;
/** How much of a title, reason or error is kept beside what it is about, in UTF-16 code units. */
export const MAX_CAPTION = 4_000;
/** Longest reason why a runner does not act on a command, and longest text of its status, in UTF-16 code units. */
export const MAX_REFUSAL_REASON = 500;
export const MAX_SENTENCE = 1_000;
/** Longest text of a message of another role than assistant and user, in UTF-16 code units. */
export const MAX_OTHER_TEXT = 512 * 1024;
/** Most insights kept per agent that nobody has to look at: the newest. */
export const MAX_SIGNALS_KEPT = 1_000;
/** How much of its line an insight quotes, in UTF-16 code units. */
export const MAX_INSIGHT_DETAIL = 2000;
/** Lengths that adapters truncate descriptions, titles and texts to, in UTF-16 code units. */
const ADAPTER_LIMITS = [200, 300, 500, 8 * 1024, 16 * 1024, 64 * 1024, 128 * 1024, 256 * 1024];
/**
 * Lengths that protocol, projections and adapters truncate texts to, in UTF-16 code units: a text of such a length may end
 * inside a secret.
 */
export const TEXT_LIMITS: readonly number[] = [
  ...ADAPTER_LIMITS,
  ...[MAX_TITLE, MAX_PREVIEW, MAX_REPORT_SUMMARY, MAX_LATE_TITLE, MAX_OPTION_LABEL],
  ...[MAX_REFUSAL_REASON, MAX_SENTENCE, MAX_CAPTION, MAX_INSIGHT_DETAIL, MAX_OBLIGATION_TEXT, MAX_OTHER_TEXT],
  MAX_ITEM_TEXT,
];

/** The id of an inbox item, in UTF-16 units: it holds two ids as JSON, which writes some signs as six. */
export const MAX_INBOX_ID = 2 * 6 * MAX_ID_LENGTH + 128;
/** Most inbox items marked in one request. */
export const MAX_MARKED = 500;
/** What a person at a browser is called, in UTF-16 units. */
export const MAX_PERSON_NAME = 60;

/** Activity is counted in minutes, and kept for a day. */
export const MINUTE_MS = 60_000;
export const ACTIVITY_KEPT_MINUTES = 24 * 60;

/** A call of the webhook that has not been answered by then has failed. */
export const WEBHOOK_CALL_MS = 10_000;
/** For so long nobody else makes a call that somebody has taken. */
export const WEBHOOK_LEASE_MS = 3 * WEBHOOK_CALL_MS;
/** What comes up is told once it has stood for so long: a failure may be mended at once, an answer given by somebody. */
export const WEBHOOK_SETTLE_MS = 3_000;
/** The wait before a call is made for the second time, and the longest before it is made again. */
export const WEBHOOK_FIRST_RETRY_MS = 5_000;
export const WEBHOOK_RETRY_MS = 60 * 60_000;

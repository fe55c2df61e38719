import { CUSTOM } from '@interlude/protocol/event-fields';
import {
  MAX_CAPTION,
  MAX_ID_LENGTH,
  MAX_LOG_MESSAGE_BYTES,
  MAX_NAMED,
  MAX_PENDING_REQUESTS,
  MAX_RECORD_BYTES,
  MAX_RECORD_VALUES,
  MAX_RECORDS_PER_REQUEST,
  MAX_REQUEST_BYTES,
  MAX_TOPICS,
} from '@interlude/protocol/limits';
import { hostileTexts } from './hostile-texts';

/**
 * Inputs at the limits of PROTOCOL.md: each case is a few accepted requests followed by reads of the session.
 * Everything concerns session `s` of agent `a`.
 */
export interface HostileCase {
  name: string;
  /** Records by request, without `seq`. */
  requests: () => object[][];
  /** Reads that follow, as paths below the session. */
  asks?: () => { route: string; body: object }[];
}

const MOST = MAX_RECORDS_PER_REQUEST;
const AT = 1_795_170_167_743;

const base = { agentId: 'a', occurredAt: AT };
const event = (event: object, sessionId = 's') => ({ kind: 'event', ...base, sessionId, event });
const custom = (name: string, value: object) => event({ type: 'CUSTOM', name, value });
const log = (log: object) => ({ kind: 'log', ...base, log: { level: 'info', component: 'c', ...log } });
const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));
const run = event({ type: 'RUN_STARTED', threadId: 's', runId: 'r' });
const finish = event({ type: 'RUN_FINISHED', threadId: 's', runId: 'r' });
const ids = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}${index}`);

/** Text length that fills one record. */
const MUCH = MAX_RECORD_BYTES - 2_000;
/** Number of such records in a request. */
const LARGE_IN_REQUEST = Math.floor(MAX_REQUEST_BYTES / MAX_RECORD_BYTES) - 1;

const opened = (at: number) =>
  custom(CUSTOM.requestOpened, {
    request_id: `q${at}`,
    kind: 'permission',
    tool_name: 'Bash',
    input: { command: 'ls' },
  });
const resolved = (at: number) => custom(CUSTOM.requestResolved, { request_id: `q${at}`, outcome: 'allowed' });
const started = (at: number) => custom(CUSTOM.taskStarted, { task_id: `t${at}`, description: `Task ${at}` });
const completed = (at: number) => custom(CUSTOM.taskCompleted, { task_id: `t${at}`, status: 'completed' });
const snapshot = (messages: object[]) => event({ type: 'MESSAGES_SNAPSHOT', messages });
const textEvent = (type: string, messageId: string, more: object = {}) => event({ type, messageId, ...more });
const session = (at: number) => event({ type: 'CUSTOM', name: CUSTOM.sessionStarted, value: {} }, `s${at}`);
const message = (id: string, role: string) => [
  textEvent('TEXT_MESSAGE_START', id, { role }),
  textEvent('TEXT_MESSAGE_CONTENT', id, { delta: 'What does it say?' }),
  textEvent('TEXT_MESSAGE_END', id),
];

/** Maximum number of values in a request's input; the record itself has some. */
const MOST_NAMES = MAX_RECORD_VALUES - 20;
/** An object with `count` keys. Unordered integer keys are the slowest to build and read. */
const manyNames = (count: number, value: unknown = 1) =>
  Object.fromEntries(times(count, (at) => [`${(at * 7_919) % 4_294_967}`, value]));
const manyWords = (count: number) => Object.fromEntries(times(count, (at) => [`name ${at}`, 1]));
const WIDE_INPUTS = { 'many names': manyWords, 'many integer names': manyNames };
const call = (toolCallId: string, delta: string) => [
  event({ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'Bash' }),
  event({ type: 'TOOL_CALL_ARGS', toolCallId, delta }),
  event({ type: 'TOOL_CALL_END', toolCallId }),
];

export const HOSTILE_CASES: readonly HostileCase[] = [
  {
    name: 'requests opened in one turn, then resolved',
    requests: () => [[run, ...times(MOST - 1, opened)], times(MOST, resolved), [finish]],
  },
  {
    name: 'tasks started in one turn, then ended',
    requests: () => [[run, ...times(MOST - 1, started)], times(MOST, completed), [finish]],
  },
  {
    name: 'progress of tasks',
    requests: () => [
      times(MOST, started),
      times(MOST, (at) => custom(CUSTOM.taskProgress, { task_id: `t${at}`, summary: 'on its way' })),
      times(MOST, () => custom(CUSTOM.taskProgress, { task_id: 't7', summary: 'on its way' })),
    ],
  },
  {
    name: 'runs of one task',
    requests: () => [
      times(MOST / 2, (at) => [
        custom(CUSTOM.taskStarted, { task_id: 't', run_id: `run${at}` }),
        custom(CUSTOM.taskCompleted, { task_id: 't', run_id: `run${at}` }),
      ]).flat(),
    ],
  },
  { name: 'sessions', requests: () => [times(MOST, session), times(MOST, session)] },
  { name: 'agents', requests: () => [times(MOST, (at) => ({ ...log({ message: 'm' }), agentId: `a${at}` }))] },
  {
    name: 'sessions, then an insight and a loss without a session',
    requests: () => [
      times(MOST, session),
      [
        ...times(20, () => log({ level: 'fatal', component: 'hook:stop', message: 'died' })),
        { kind: 'lost', ...base, lost: { count: 1, reason: 'outbox-full' } },
      ],
    ],
  },
  {
    name: 'sessions, then losses without a session',
    requests: () => [
      times(1_000, session),
      times(10, () => ({ kind: 'lost', ...base, lost: { count: 1, reason: 'outbox-full' } })),
    ],
  },
  {
    name: 'turns',
    requests: () => [
      Array.from({ length: MOST / 2 }, (_, index) => [
        event({ type: 'RUN_STARTED', threadId: 's', runId: `r${index}` }),
        event({ type: 'RUN_FINISHED', threadId: 's', runId: `r${index}` }),
      ]).flat(),
    ],
  },
  {
    name: 'turns that interrupt one another',
    requests: () => [times(MOST, (at) => event({ type: 'RUN_STARTED', threadId: 's', runId: `r${at}` }))],
  },
  {
    name: 'messages open at once, then ended',
    requests: () => [
      [run, ...times(MOST - 1, (at) => textEvent('TEXT_MESSAGE_START', `m${at}`, { role: 'assistant' }))],
      times(MOST, (at) => textEvent('TEXT_MESSAGE_CONTENT', `m${at}`, { delta: 'a' })),
      times(MOST, (at) => textEvent('TEXT_MESSAGE_END', `m${at}`)),
      [finish],
    ],
  },
  {
    name: 'interleaved deltas of messages',
    requests: () => [
      [run, ...times(200, (at) => textEvent('TEXT_MESSAGE_START', `m${at}`, { role: 'assistant' }))],
      times(MOST, (at) => textEvent('TEXT_MESSAGE_CONTENT', `m${at % 200}`, { delta: 'a word ' })),
      times(MOST, (at) => textEvent('TEXT_MESSAGE_CONTENT', `m${at % 200}`, { delta: 'a word ' })),
      [...times(200, (at) => textEvent('TEXT_MESSAGE_END', `m${at}`)), finish],
    ],
  },
  {
    name: 'deltas of an endless message',
    requests: () => [
      [run, textEvent('TEXT_MESSAGE_START', 'm', { role: 'assistant' })],
      ...[1, 2, 3].map(() =>
        times(MOST, () => textEvent('TEXT_MESSAGE_CONTENT', 'm', { delta: 'a word '.repeat(80) })),
      ),
    ],
  },
  {
    name: 'deltas of one call, and of one thought',
    requests: () => [
      [run, event({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'Bash' })],
      times(MOST, () => event({ type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"a":1}'.repeat(60) })),
      times(MOST, () => textEvent('REASONING_MESSAGE_CONTENT', 'm', { delta: 'a word '.repeat(60) })),
      [finish],
    ],
  },
  {
    name: 'repeated messages',
    requests: () => [
      [run, ...times((MOST - 1) / 3, () => message('m', 'assistant')).flat()],
      times(MOST / 4, () => message('u', 'user')).flat(),
      [finish],
    ],
  },
  {
    name: 'user messages, then the turn that names them',
    requests: () => [
      times(MOST / 4, (at) => message(`u${at}`, 'user')).flat(),
      times(MOST / 4, (at) => message(`v${at}`, 'user')).flat(),
      [
        event({ type: 'RUN_STARTED', runId: 'r', metadata: { interlude: { userMessageIds: ids('u', MOST) } } }),
        event({ type: 'RUN_FINISHED', runId: 'r', metadata: { interlude: { userMessageIds: ids('v', MOST) } } }),
      ],
    ],
  },
  {
    name: 'user messages in a run’s input',
    requests: () => [
      [
        event({
          type: 'RUN_STARTED',
          runId: 'r',
          input: { messages: ids('u', MOST).map((id) => ({ id, role: 'user', content: 'hello' })) },
        }),
        finish,
      ],
    ],
  },
  {
    name: 'user messages in an open turn',
    requests: () => [[run, ...times(MOST / 3 - 1, (at) => message(`u${at}`, 'user')).flat()], [finish]],
  },
  {
    name: 'tool calls open at once',
    requests: () => [
      [run, ...times(MOST - 1, (at) => event({ type: 'TOOL_CALL_START', toolCallId: `c${at}`, toolCallName: 'Bash' }))],
      times(MOST, (at) => event({ type: 'TOOL_CALL_ARGS', toolCallId: `c${at}`, delta: '{"a":1}' })),
      times(MOST, (at) => event({ type: 'TOOL_CALL_RESULT', toolCallId: `c${at}`, content: 'done' })),
      [event({ type: 'RUN_ERROR', message: 'it broke' })],
    ],
  },
  {
    name: 'subagent text',
    requests: () => [
      [
        started(1),
        ...times(MOST - 1, (at) => textEvent('TEXT_MESSAGE_CHUNK', `m${at}`, { delta: 'a', subagentRunId: 't1' })),
      ],
      times(MOST, (at) => textEvent('TEXT_MESSAGE_CHUNK', `n${at}`, { delta: 'a', subagentRunId: 't1' })),
    ],
  },
  {
    name: 'task ends, then the turn that folds them',
    requests: () => [
      times(MOST, started),
      times(MOST, completed),
      [
        event({
          type: 'RUN_STARTED',
          runId: 'r',
          metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: ids('t', MOST) } } },
        }),
        event({ type: 'RUN_FINISHED', runId: 'r', metadata: { interlude: { foldedTaskIds: ids('t', MOST) } } }),
      ],
    ],
  },
  { name: 'turns that all name all messages', requests: () => [turnsNaming('userMessageIds', 'u')] },
  { name: 'turns that all fold all tasks', requests: () => [times(MOST, started), turnsNaming('foldedTaskIds', 't')] },
  {
    name: 'notices, quarantined records and items outside any turn',
    requests: () => [
      times(MOST, () => custom(CUSTOM.notice, { text: 'look' })),
      times(MOST, (at) => ({ kind: 'event', ...base, sessionId: 's', event: { type: at } })),
      times(MOST, () => ({ kind: 'unheard of', ...base })),
    ],
  },
  {
    name: 'snapshots with the maximum number of messages, repeated with changes',
    requests: () =>
      ['once', 'again'].map((content) => [
        run,
        ...times(3, (at) => snapshot(ids(`m${at}-`, 4_000).map((id) => ({ id, role: 'assistant', content })))),
      ]),
  },
  {
    name: 'as many snapshots of a growing call as a request holds',
    requests: () => [
      times(MOST, (at) => snapshot([{ id: 'x', role: 'tool', toolCallId: 'c', content: 'x'.repeat(at % 500) }])),
    ],
  },
  {
    name: 'log lines',
    requests: () => [
      times(MOST, (at) => log({ message: `line ${at}`, component: `c${at}` })),
      times(LARGE_IN_REQUEST, () => log({ message: 'x'.repeat(MUCH) })),
    ],
  },
  {
    name: 'maximum-size log lines of two random letters',
    requests: () => [times(SOME_LINES, (at) => log({ message: twoLetters(MAX_LOG_MESSAGE_BYTES, at + 1) }))],
  },
  {
    name: 'statuses',
    requests: () => [
      times(MOST, (at) => ({
        kind: 'status',
        ...base,
        sessionId: `s${at}`,
        status: { kind: 'claude', state: 'idle' },
      })),
      times(LARGE_IN_REQUEST, () => ({ kind: 'status', ...base, sessionId: 's', status: { what: 'x'.repeat(MUCH) } })),
    ],
  },
  {
    name: 'texts as large as a record',
    requests: () => [
      [
        run,
        ...times(LARGE_IN_REQUEST, (at) =>
          textEvent('TEXT_MESSAGE_CHUNK', `m${at}`, { delta: ' \n'.repeat(MUCH / 4) }),
        ),
      ],
      times(LARGE_IN_REQUEST, (at) => custom(CUSTOM.taskStarted, { task_id: `t${at}`, description: 'd'.repeat(MUCH) })),
      times(LARGE_IN_REQUEST, (at) => custom(CUSTOM.requestOpened, { request_id: `q${at}`, title: 'd'.repeat(MUCH) })),
      times(LARGE_IN_REQUEST, (at) => custom(CUSTOM.notice, { text: `${at}${'d'.repeat(MUCH)}` })),
      [finish],
    ],
  },
  {
    name: 'JSON of maximum record width and depth',
    requests: () => [
      [
        run,
        ...times(LARGE_IN_REQUEST, (at) => custom(CUSTOM.requestOpened, { request_id: `q${at}`, input: nested() })),
      ],
      [{ ...log({ message: 'm' }), more: nested() }],
    ],
  },
  {
    name: 'JSON of maximum width',
    requests: () => [
      [
        run,
        ...times(LARGE_IN_REQUEST, (at) =>
          custom(CUSTOM.requestOpened, { request_id: `q${at}`, input: nested(MAX_RECORD_VALUES / 2 - 100) }),
        ),
      ],
    ],
  },
  ...Object.entries(WIDE_INPUTS).map(([what, input]) => ({
    name: `requests for ${what}, and as many answers`,
    requests: () => [
      [
        run,
        ...times(LARGE_IN_REQUEST, (at) =>
          custom(CUSTOM.requestOpened, { request_id: `q${at}`, tool_name: 'Bash', input: input(MOST_NAMES) }),
        ),
      ],
    ],
    asks: () =>
      times(2, (at) => ({
        route: `requests/q${at}`,
        body: { behavior: 'allow', clientId: `c${at}`, updatedInput: input(MOST_NAMES) },
      })),
  })),
  ...Object.entries(WIDE_INPUTS).map(([what, input]) => ({
    name: `tool calls with ${what}`,
    requests: () => [
      [run, ...times(LARGE_IN_REQUEST, (at) => call(`c${at}`, JSON.stringify(input(MOST_NAMES)))).flat()],
      times(LARGE_IN_REQUEST, (at) => call(`d${at}`, JSON.stringify(input(49_000)))).flat(),
      times(40, (at) => call(`e${at}`, JSON.stringify(input(1_000)))).flat(),
    ],
  })),
  {
    name: 'tool calls with JSON of brackets only',
    requests: () => [
      [run, ...times(LARGE_IN_REQUEST, (at) => call(`c${at}`, '['.repeat(MUCH / 2) + ']'.repeat(MUCH / 2))).flat()],
      times(LARGE_IN_REQUEST, (at) => call(`d${at}`, `[${'[],'.repeat(MUCH / 3 - 2)}1]`)).flat(),
    ],
  },
  {
    name: 'a question with the maximum number of answers',
    requests: () => [[run, custom(CUSTOM.requestOpened, { request_id: 'q', kind: 'question', title: 'Which?' })]],
    asks: () => [{ route: 'requests/q', body: { answers: manyNames(MOST_NAMES, 'yes') } }],
  },
  {
    name: 'one record as large as a request, of values only',
    requests: () => [
      [custom(CUSTOM.notice, { list: Array.from({ length: MAX_REQUEST_BYTES / 2 - 500 }, () => 1) })],
      [custom(CUSTOM.notice, { list: Array.from({ length: MAX_REQUEST_BYTES / 4 - 500 }, () => []) })],
    ],
  },
  {
    name: 'a page of large turns',
    requests: () => times(3, (request) => times(66, (turn) => largeTurn(`${request}-${turn}`)).flat()) as object[][],
  },
  {
    name: 'a hundred thousand tasks, the oldest running',
    requests: () =>
      times(10, (request) =>
        times(MOST, (at) => (request + at === 0 ? started(0) : completed(request * MOST + at))),
      ) as object[][],
  },
  {
    name: 'turns that each name unique messages and tasks',
    requests: () => [
      times(600, (at) => turnNaming('userMessageIds', at)),
      times(600, (at) => turnNaming('foldedTaskIds', at)),
    ],
  },
  {
    name: 'fifty thousand running tasks at the end of their session',
    requests: () => [
      ...times(5, (request) => times(MOST, (at) => started(request * MOST + at))),
      [custom(CUSTOM.sessionEnded, { exitCode: 0 })],
    ],
  },
  {
    name: 'sessions with many tasks that all wake and end at once',
    requests: () => [
      ...times(5, (request) => times(MOST, (at) => inSession(at % SOME, started(request * MOST + at)))),
      times(SOME, (at) => inSession(at, event({ type: 'RUN_STARTED', runId: `r${at}`, parentRunId: 'p' }))),
      times(SOME, (at) => inSession(at, custom(CUSTOM.sessionEnded, { exitCode: 0 }))),
    ],
  },
  {
    name: 'tasks of as many agents and sessions',
    requests: () => times(2, () => times(MOST, (at) => ({ ...started(at), agentId: `a${at}`, sessionId: `s${at}` }))),
  },
  {
    name: 'sessions with maximum memory in one batch',
    requests: () => [
      ...times(5, (request) =>
        times(9 * MAX_PENDING_REQUESTS, (at) => inSession(request * 9 + (at % 9), longTitled(at))),
      ),
      times(5 * 9, (at) => inSession(at, custom(CUSTOM.notice, { text: 'look' }))),
    ],
  },
  {
    name: 'open answers that each reply to a thousand messages',
    requests: () => times(5, (request) => times(25, (at) => answering(`m${request}-${at}`))),
  },
  {
    name: 'turns that each name a thousand messages by maximum-length ids',
    requests: () => times(8, (request) => times(15, (at) => longNaming(`r${request}-${at}`)).flat()),
  },
  {
    name: 'agents with maximum-size status records',
    requests: () => times(8, (request) => times(LARGE_IN_REQUEST, (at) => statusOf(`a${request}-${at}`))),
  },
  {
    name: 'a message of a hundred thousand deltas, then ended',
    requests: () => [
      [run, textEvent('TEXT_MESSAGE_START', 'm', { role: 'assistant' })],
      ...times(10, () => times(MOST, () => textEvent('TEXT_MESSAGE_CONTENT', 'm', { delta: 'a' }))),
      [textEvent('TEXT_MESSAGE_END', 'm'), finish],
    ],
  },
  {
    name: 'texts costlier than their length, in every field',
    requests: () => [hostileTexts(TEXT_LENGTH).flatMap(({ text }, index) => inEveryField(text, index))],
  },
  {
    name: 'oversized records',
    requests: () => [times(LARGE_IN_REQUEST, () => log({ message: 'é'.repeat(MAX_RECORD_BYTES / 2) }))],
  },
];

/** As many turns as fit into a request, each naming the same thousand ids. */
function turnsNaming(field: string, name: string): object[] {
  const named = ids(name, 1_000);
  return times(450, (at) => [
    event({ type: 'RUN_STARTED', runId: `r${at}`, metadata: { interlude: { [field]: named } } }),
    event({ type: 'RUN_FINISHED', runId: `r${at}`, metadata: { interlude: { [field]: named } } }),
  ]).flat();
}

/** A turn that names a thousand unique ids. */
function turnNaming(field: string, at: number): object {
  const metadata = { interlude: { [field]: ids(`${at}-`, 1_000) } };
  return event({ type: 'RUN_STARTED', runId: `r${at}`, metadata });
}

/** More maximum-size lines than one slice of a log holds. */
const SOME_LINES = 17;

/** Pseudorandom text without repeated stretches. */
export function twoLetters(length: number, seed: number): string {
  let state = seed;
  const letter = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 16) & 1 ? 'a' : 'b';
  };
  return times(length, letter).join('');
}

/** Number of sessions in cases with many rows per session. */
const SOME = 500;

const inSession = (at: number, record: object) => ({ ...record, sessionId: `s${at}` });

/** An unfinished answer that replies to the maximum number of messages with maximum-length ids. */
function answering(messageId: string): object {
  const replyTo = ids('u'.repeat(MAX_ID_LENGTH - 4), MAX_NAMED);
  return textEvent('TEXT_MESSAGE_START', messageId, { role: 'assistant', metadata: { interlude: { replyTo } } });
}

function longNaming(runId: string): object[] {
  const userMessageIds = ids('u'.repeat(MAX_ID_LENGTH - 4), MAX_NAMED);
  return [
    event({ type: 'RUN_STARTED', runId, metadata: { interlude: { userMessageIds } } }),
    event({ type: 'RUN_FINISHED', runId }),
  ];
}

const statusOf = (agentId: string) => ({ kind: 'status', ...base, agentId, status: { what: 'x'.repeat(MUCH) } });

const longTitled = (at: number) =>
  custom(CUSTOM.requestOpened, { request_id: `q${at}`, kind: 'permission', title: 't'.repeat(MAX_CAPTION) });

/** Forty answers of a thousand characters. */
function largeTurn(id: string): object[] {
  const messages = times(40, (at) => textEvent('TEXT_MESSAGE_CHUNK', `${id}-${at}`, { delta: 'a word '.repeat(140) }));
  return [event({ type: 'RUN_STARTED', runId: id }), ...messages, event({ type: 'RUN_FINISHED', runId: id })];
}

/** Text length at which one copy per field fits into a request. */
const TEXT_LENGTH = 2_000;

/** Puts a text into every field: title, preview, name, description, log line. */
function inEveryField(text: string, at: number): object[] {
  return [
    custom(CUSTOM.taskStarted, { task_id: `t${at}`, description: text, task_type: text }),
    custom(CUSTOM.taskCompleted, { task_id: `t${at}`, summary: text, error: text }),
    custom(CUSTOM.requestOpened, { request_id: `q${at}`, title: text, tool_name: text }),
    textEvent('TEXT_MESSAGE_CHUNK', `m${at}`, { delta: text, name: text }),
    log({ message: text, component: text.slice(0, 200) }),
  ];
}

/** Many small values at the maximum nesting depth of a record. */
function nested(count = 200_000): unknown {
  let value: unknown = Array.from({ length: count }, () => [1]);
  for (let depth = 0; depth < 40; depth += 1) value = { d: value };
  return value;
}

/** All reads of what a case stored. */
export const HOSTILE_READS: readonly string[] = [
  '/api/v1/sessions',
  '/api/v1/sessions/s',
  '/api/v1/sessions/s/transcript',
  '/api/v1/sessions/s/transcript?limit=200',
  '/api/v1/sessions/s/tasks',
  '/api/v1/sessions/s/tasks/t1',
  '/api/v1/sessions/s/turn-at?at=1795170167743',
  '/api/v1/agents',
  '/api/v1/agents/a',
  '/api/v1/agents/a/reply-obligations',
  '/api/v1/agents/a/logs',
  '/api/v1/agents/a/logs?limit=1000',
  `/api/v1/agents/a/logs?regex=${encodeURIComponent('(a|aa)*b')}`,
  // a class after a counted repetition: a new engine state at every character
  ...['[^c]*a[^c]{140}[cd]', '(?s).*a.{140}[cd]', '((a|b)*a(a|b){40})[cd]', '[ab]*a[ab]{60}\\z'].map(
    (regex) => `/api/v1/agents/a/logs?regex=${encodeURIComponent(regex)}`,
  ),
  `/api/v1/agents/a/logs/download?regex=${encodeURIComponent('[^c]*a[^c]{140}[cd]')}`,
  '/api/v1/agents/a/logs/components',
  '/api/v1/stream?topic=fleet&topic=session:s&topic=logs:a&after=0',
  `/api/v1/stream?${ids('topic=session:s', MAX_TOPICS).join('&')}&after=0`,
];

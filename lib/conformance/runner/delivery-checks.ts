import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_RECORDS_PER_REQUEST, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { assert, assertMatch, checksOf } from '../check';
import type { Fault, SeenRequest } from './fake-interlude';
import { type JournalLine, type RunnerTarget, textsIn } from './runner-target';
import { numbers } from './session-checks';

const refuse = (status: number, code: string): Fault => ({ kind: 'refuse', status, code });
const BYE = 'event: bye\ndata: {"reason":"planned"}\n\n';

const REFUSED_MS = 1_200;
const FENCED_MS = 1_500;
/** Tolerance for timestamps taken on both sides of a socket. */
const EARLY_MS = 50;
/** Longest back-off of a runner after 401. */
const MAX_BACKOFF_MS = 35_000;

export const ANSWERS = checksOf<RunnerTarget>('answers', '2, Errors', {
  'a request whose response was lost is repeated unchanged': {
    why: '3, Ingest',
    todo: 'Send unacknowledged records again, under the same numbers.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      const [duplicates, faults] = [fake.log.duplicates, fake.log.faults.length];
      const script: Fault[] = [{ kind: 'cut-after-storing' }, { kind: 'half-a-response' }];
      const texts = await fake.during(
        () => script.shift() ?? null,
        async () => {
          const turn = await runner.promptTexts('count 10 0');
          const todo = 'Report as often as you promised.';
          await runner.waitFor('two more requests', () => script.length === 0, { todo });
          return turn;
        },
      );
      assertMatch('the texts', texts, numbers(10));
      await runner.waitFor('records that come again', () => fake.log.duplicates > duplicates && script.length === 0);
      assertMatch('records that changed', fake.log.faults.slice(faults), []);
    },
  },
  'the runner waits for Retry-After after 429 and 503': {
    todo: 'Wait for Retry-After.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      for (const [status, code] of [
        [429, 'too_many_requests'],
        [503, 'unavailable'],
      ] as const) {
        const refused: SeenRequest[] = [];
        const refuseFirst = (request: SeenRequest): Fault | null =>
          refused.push(request) > 1 ? null : { kind: 'refuse', status, code, retryAfter: 1 };
        await fake.during(refuseFirst, () => runner.prompt('say later'));
        const at = refused[0]?.endedAt ?? 0;
        const waited = (fake.requests.find((request) => request.at > at)?.at ?? 0) - at;
        assert(waited >= 1_000 - EARLY_MS, `1 s between ${status} and the next try`, `${waited} ms`);
      }
    },
  },
  'a rejected token stops sending, not recording': {
    todo: 'Keep every record, back off, and retry.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      const before = fake.requests.length;
      const tries = () => fake.requests.length - before;
      const message = await fake.during(
        () => refuse(401, 'unauthenticated'),
        async () => {
          const sent = await runner.send('count 20 10');
          await runner.waitFor('a request', () => tries() > 0, { todo: 'Send what the agent says.' });
          await pause(REFUSED_MS);
          return sent;
        },
      );
      assert(tries() <= 20, 'a few tries', `${tries()} in ${REFUSED_MS} ms`);
      // A runner that backs off may retry as soon as its new stream is accepted.
      fake.commands.endStreams(BYE);
      const turn = await runner.answer(message, Math.max(runner.timeout.timeoutMs, MAX_BACKOFF_MS));
      assertMatch('the texts', textsIn(turn), numbers(20));
    },
  },
  'a request rejected as too large is split without loss': {
    todo: 'Halve the batch until it is accepted.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      const [lost, before] = [fake.log.lost(), fake.requests.length];
      const tooLarge = ({ records }: SeenRequest) => (records.length > 3 ? refuse(413, 'too_large') : null);
      const texts = await fake.during(tooLarge, () => runner.promptTexts('count 40 0'));
      assertMatch('the texts', texts, numbers(40));
      assertMatch('the number of records declared lost', fake.log.lost() - lost, 0);
      const tries = fake.requests.length - before;
      assert(tries < 300, 'fewer than 300 tries', tries);
    },
  },
  'a record that is always rejected is declared lost in its place, and later records follow': {
    why: '3, Ingest, 6',
    todo: 'Find the refused record, and send a `lost` record under its number.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      const lost = fake.log.lost();
      // Other records may quote the text, for example a log line.
      const isRefused = ({ records }: SeenRequest) => JSON.stringify(records).includes('poison');
      const turn = await fake.during(
        (request) => (isRefused(request) ? refuse(400, 'malformed') : null),
        () => runner.prompt('say poison'),
      );
      assert(turn.state === 'finished', 'the turn to end', turn.state);
      assert(fake.log.lost() > lost, 'a lost record', 'none');
      assertMatch('the next turn', await runner.promptTexts('say better'), ['better']);
    },
  },
  'a slow response is awaited: one request at a time': {
    why: '3, Ingest',
    todo: 'Wait for the response before you send the next request.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      const before = fake.requests.length;
      await fake.during(
        () => ({ kind: 'slow', ms: 300 }),
        () => runner.prompt('count 10 20'),
      );
      const requests = fake.requests.slice(before);
      const early = requests.filter(({ at }, index) => at < (requests[index - 1]?.endedAt ?? 0) - EARLY_MS);
      const counts = early.map(({ records }) => records.length);
      assertMatch('requests beside another', counts, []);
    },
  },
  'a fenced outbox sends nothing more in its epoch': {
    why: '3, Ingest, 2',
    todo: 'Stop for good at 403 stale_epoch: another outbox of this producer has written.',
    async run(runner) {
      await runner.prompt('say before');
      const { fake } = runner;
      const epoch = Math.max(...fake.log.accepted.map((record) => record.epoch));
      const isStale = ({ producer }: SeenRequest) => producer.epoch <= epoch;
      await fake.during(
        (request) => (isStale(request) ? refuse(403, 'stale_epoch') : null),
        async () => {
          await runner.send('count 30 50');
          await runner.waitFor('a request', () => fake.requests.some(({ status }) => status === 403));
          const before = fake.requests.length;
          await pause(FENCED_MS);
          const later = fake.requests.slice(before).filter(isStale);
          assert(later.length <= 1, 'no more requests', `${later.length} in ${FENCED_MS} ms`);
        },
      );
      await runner.kill();
      await runner.prompt('say after');
    },
  },
});

const OUTAGE_MS = 2_500;
/** Output that the agent wrote this long before a kill must be stored. */
const STORED_MS = 1_500;
const FORGOTTEN_RECORDS = 5;

export const OUTBOX = checksOf<RunnerTarget>('outbox', '3, Ingest', {
  'everything arrives once after an outage, whatever the number of attempts': {
    why: '2, Errors',
    todo: 'Retry without limit, with increasing waits, and count no attempts against a record.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake } = runner;
      const before = fake.requests.length;
      const tries = () => fake.requests.length - before;
      const message = await fake.during(
        () => (tries() % 2 === 0 ? { kind: 'cut' } : refuse(500 + (tries() % 4), 'internal')),
        async () => {
          const sent = await runner.send('count 100 10');
          await pause(OUTAGE_MS);
          assert(tries() <= 50, 'no more than 50 tries', `${tries()} in ${OUTAGE_MS} ms`);
          await runner.waitFor('several tries', () => tries() >= 2);
          return sent;
        },
      );
      assertMatch('the texts', textsIn(await runner.answer(message)), numbers(100));
    },
  },
  'records queued at a kill are sent by the next process': {
    why: '8, Invariants, 4',
    todo: 'Store each record before doing anything else with it, and send each once.',
    async run(runner) {
      await runner.ensureRunning();
      const { fake, journal } = runner;
      fake.faultFor = () => refuse(503, 'unavailable');
      const message = await runner.send('count 800 5');
      const written = () => journal.turnFor(message.id).filter(({ type }) => type === 'say');
      await runner.waitFor('its first texts', () => written().length >= 400, {
        todo: 'Pass the message to the agent.',
      });
      const killedAt = Date.now();
      await runner.kill();
      fake.faultFor = () => null;
      await runner.ensureRunning();
      const stored = written().filter(({ at }) => at < killedAt - STORED_MS);
      const isSent = ({ id }: JournalLine) => fake.log.text(runner.sessionId, textOf(id) ?? '') !== '';
      const missing = () => stored.filter((line) => !isSent(line)).map(({ text }) => text);
      const seen = () => `all except ${missing().slice(0, 5).join(', ')}`;
      await runner.waitFor(`all ${stored.length} texts`, () => missing().length === 0, { seen });
      const texts = textsIn(await runner.answer(message));
      assertMatch('the texts', texts, numbers(texts.length));
      const todo = 'Store that the agent has the message with the events of its turn.';
      assertMatch('how often the agents received it', journal.received('message', message.id).length, 1, todo);
    },
  },
  'records that a restored server has lost are sent again or declared lost': {
    why: '3, Ingest, 2 and 6',
    todo: 'At 409 with a lower expectedSeq: send the records again from there, or start an epoch with a `lost` record.',
    async run(runner) {
      await runner.prompt('count 10 0');
      const { log } = runner.fake;
      const lost = log.lost();
      const dropped = log.forget(FORGOTTEN_RECORDS);
      assertMatch('the next turn', await runner.promptTexts('say who is missing?'), ['who is missing?']);
      const contents = (records: { record: Fields }[]) =>
        records.map(({ record: { seq: _, ...content } }) => JSON.stringify(content));
      const present = new Set(contents(log.accepted));
      const missing = contents(dropped).filter((content) => !present.has(content)).length;
      const declared = log.lost() - lost;
      assert(missing === 0 || declared >= missing, `${missing} records declared lost`, declared);
    },
  },
  'records are numbered from 1 without gaps, and a number keeps its record': {
    todo: 'Number each record when it is stored, once and for all.',
    async run(runner) {
      await runner.prompt('say the last but one');
      assertMatch('the faults', runner.fake.log.faults, []);
    },
  },
  'no text or turn arrives twice after disconnects, retries and kills': {
    why: '8, Invariants, 1',
    todo: 'Give each text one message id and each turn one run id, and send both once.',
    async run(runner) {
      await runner.prompt('say the last');
      const { log } = runner.fake;
      const short = runner.journal.wrote('say').filter(({ text }) => (text?.length ?? 0) < 100);
      const changed = short
        .map(({ id, text }) => ({ written: text, sent: log.text(runner.sessionId, textOf(id) ?? '') }))
        .filter(({ written, sent }) => sent !== '' && !written?.startsWith(sent));
      assertMatch('texts that differ', changed.slice(0, 3), []);
      const runs = log.entries(runner.sessionId).filter(({ event }) => event.type === 'RUN_STARTED');
      const ids = runs.map(({ event }) => event.runId);
      const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
      assertMatch('turns that begin twice', twice, []);
    },
  },
});

const BIG_CHARACTERS = 10 * 1024 * 1024;

export const LIMITS = checksOf<RunnerTarget>('limits', '2, Limits', {
  'ten million characters arrive complete, in records of at most 1 MiB that split no character': {
    todo: 'Send a long text as several deltas, split between characters.',
    async run(runner) {
      const { log } = runner.fake;
      const faults = log.faults.length;
      const turn = await runner.prompt('big');
      const message = turn.items.findLast((item) => item.kind === 'message' && item.role === 'assistant');
      const text = log.text(runner.sessionId, message?.id ?? '');
      assertMatch('its length', text.length, BIG_CHARACTERS);
      const expected = '0123456789😀'.repeat(Math.ceil(BIG_CHARACTERS / 12)).slice(0, BIG_CHARACTERS);
      const odd = text.indexOf('\ufffd');
      assert(text === expected, 'the text as the agent wrote it', text.slice(Math.max(0, odd - 20), odd + 20));
      assertMatch('records that are too large', log.faults.slice(faults), []);
    },
  },
  'no request exceeds 8 MiB or 10,000 records': {
    todo: 'Send smaller batches.',
    async run(runner) {
      await runner.prompt('count 300 0');
      const { requests } = runner.fake;
      const bytes = Math.max(...requests.map((request) => request.bytes));
      assert(bytes <= MAX_REQUEST_BYTES, 'requests of at most 8 MiB', `${bytes} bytes`);
      const count = Math.max(...requests.map(({ records }) => records.length));
      assert(count <= MAX_RECORDS_PER_REQUEST, 'at most 10,000 records in a request', count);
    },
  },
});

/** Looks like a real key, but is not one. Split so that secret scanners don't report this file. */
const KEY = ['sk', 'ant', 'api03', 'b7Qm2ZtR9xKe4LpWv8Hs', 'Yd3NcUf6Ja1G'].join('-');

async function logLine(runner: RunnerTarget, text: string): Promise<Fields> {
  const find = () => runner.fake.log.logs().find(({ message }) => textOf(message)?.includes(text));
  return await runner.waitFor(`a log record with "${text}"`, find, {
    todo: 'Pass on the agent’s `log` lines as log records.',
  });
}

export const SECRETS = checksOf<RunnerTarget>('secrets', '3, Log records', {
  'no log line contains the token of the runner': {
    todo: 'Remove it from each message before the line leaves the runner, and count it in `redacted`.',
    async run(runner) {
      await runner.prompt(`log info the dashboard takes ${runner.token} and nothing else`);
      const { redacted } = await logLine(runner, 'the dashboard takes');
      const hasToken = JSON.stringify(runner.fake.log.logs()).includes(runner.token);
      assert(!hasToken, 'log lines without the token', 'the token in one');
      assertMatch('redacted', redacted, 1);
    },
  },
  'a log line with a secret is redacted and marked': {
    todo: 'Replace what has the shape of a credential with [redacted: <kind>], and count it in `redacted`.',
    async run(runner) {
      await runner.prompt(`log warn the model answers to ${KEY} today`);
      const { message, redacted } = await logLine(runner, 'the model answers to');
      assert(!String(message).includes(KEY), 'a line without the key', message);
      assert(/\[redacted: [^\]]+\]/.test(String(message)), 'a line that marks it', message);
      assertMatch('redacted', redacted, 1);
    },
  },
  'the agent gets no INTERLUDE_ variables': {
    why: '8, Invariants, 10',
    todo: 'Remove INTERLUDE_* from the agent’s environment.',
    async run(runner) {
      await runner.prompt('say hello');
      const starts = runner.journal.lines.filter(({ dir }) => dir === 'start');
      assertMatch(
        'what it finds in its environment',
        starts.flatMap(({ sees }) => listOf(sees)),
        [],
      );
    },
  },
});

/** Generous, because the checks also run on busy machines. */
const MAX_BLOCKED_MS = 2_500;
const OFFLINE_MS = 4_000;
const SLOW_MS = 4_000;
/** Fifty texts of this length exceed the capacity of a pipe, so the agent blocks if the runner does not read. */
const TEXT_CHARACTERS = 8_000;

/** @throws CheckFailed if a write of the agent blocked for too long in the turn for this message */
function assertNotBlocked(runner: RunnerTarget, messageId: string): void {
  const longest = Math.max(0, ...runner.journal.turnFor(messageId).map(({ blockedMs = 0 }) => blockedMs));
  assert(longest < MAX_BLOCKED_MS, `the agent never blocked for ${MAX_BLOCKED_MS} ms`, `${longest} ms`);
}

export const NEVER_IN_THE_WAY = checksOf<RunnerTarget>('never in the way', '8, Invariants, 9', {
  'the agent keeps working while the server is unreachable, and everything arrives afterwards': {
    todo: 'Store what the agent writes, keep reading it, and send in the background, in order, each record once.',
    async run(runner) {
      const { fake, journal } = runner;
      const message = await runner.send(`count 50 30 ${TEXT_CHARACTERS}`);
      const written = () => journal.turnFor(message.id).filter(({ type }) => type === 'say').length;
      await runner.waitFor('its first texts', () => written() >= 5, { todo: 'Pass the message to the agent.' });
      fake.isOffline = true;
      try {
        const outage = pause(OFFLINE_MS);
        const seen = () => `${written()} texts`;
        await runner.waitFor('the agent to continue meanwhile', () => written() >= 40, { seen });
        await outage;
      } finally {
        fake.isOffline = false;
      }
      assertNotBlocked(runner, message.id);
      const texts = textsIn(await runner.answer(message)).map((text) => `${Number.parseInt(text, 10)}`);
      assertMatch('the texts', texts, numbers(50));
    },
  },
  'a slow server does not block the agent': {
    todo: 'Keep reading the agent while a response is pending.',
    async run(runner) {
      await runner.ensureRunning();
      const message = await runner.fake.during(
        () => ({ kind: 'slow', ms: SLOW_MS }),
        async () => {
          const sent = await runner.send(`count 60 5 ${TEXT_CHARACTERS}`);
          const isDone = () => runner.journal.turnFor(sent.id).at(-1)?.type === 'turn-end';
          await runner.waitFor('the end of its turn', isDone);
          assertNotBlocked(runner, sent.id);
          return sent;
        },
      );
      await runner.answer(message);
    },
  },
});

import { setTimeout as pause } from 'node:timers/promises';
import { attachmentKind, supportedAttachments } from '@interlude/protocol/attachments';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { MAX_EVERY_MS } from '@interlude/protocol/limits';
import { PROTOCOL_VERSION } from '@interlude/protocol/version';
import { assert, assertMatch, checksOf, Unsupported } from '../check';
import { type RunnerTarget, textsIn } from './runner-target';

/** Time in which a runner that ignores its fence would reconnect. */
const RECONNECT_MS = 2_500;
/** Wait for acknowledgements in transit. Another check covers one that never arrives. */
const ACK_TIMEOUT_MS = 5_000;
const PIECE_PAUSE_MS = 30;
/** Time for an agent on a busy machine to read its input. */
const READ_MS = 1_500;
/** One attachment of each kind. */
const ATTACHMENTS = [
  { hash: '0'.repeat(64), name: 'shot.png', mediaType: 'image/png', bytes: 68 },
  { hash: '1'.repeat(64), name: 'notes.txt', mediaType: 'text/plain', bytes: 12 },
];

/** @throws CheckFailed unless the agents received the message `count` times */
function assertReceived(runner: RunnerTarget, id: string, count: number): void {
  assertMatch('how often the agents received it', runner.journal.received('message', id).length, count);
}

export const COMMANDS = checksOf<RunnerTarget>('commands', '7, Commands', {
  'a message is acknowledged as delivered once the agent has it': {
    todo: 'Pass it to the agent, and then acknowledge it.',
    async run(runner) {
      await runner.prompt('say I am there');
      const message = await runner.send('say thanks');
      const ack = await runner.ack(message, ['delivered', 'done']);
      const line = await runner.waitFor(
        'the message at the agent',
        () => runner.journal.received('message', message.id)[0],
      );
      assert(line.at <= ack.at + READ_MS, 'the message at the agent by then', line);
      const connected = runner.fake.commands.streams.at(-1)?.runner;
      const todo = 'Name runner and startedAt in each acknowledgement, as on the stream.';
      assertMatch('the runner of the acknowledgement', ack.runner, connected, todo);
      await runner.answer(message);
    },
  },
  'a repeated command is carried out once and acknowledged every time': {
    todo: 'Remember the ids of handled commands.',
    async run(runner) {
      await runner.ensureRunning();
      const { commands } = runner.fake;
      const message = commands.queueMessage(runner.sessionId, 'say once', 2);
      await runner.answer(message);
      commands.resend(message);
      const before = commands.acks.filter(({ commandId }) => commandId === message.id).length;
      await runner.ack(message, ['delivered', 'done'], before + 1);
      await runner.prompt('say next');
      assertReceived(runner, message.id, 1);
    },
  },
  'a command carried out before a kill is acknowledged again and not repeated': {
    todo: 'Store the ids on disk, and acknowledge again what is resent or was not confirmed.',
    async run(runner) {
      await runner.ensureRunning();
      const { commands } = runner.fake;
      commands.refusesAcks = 503;
      const message = await runner.send('say before the kill');
      await runner.answer(message);
      await runner.ack(message, ['delivered', 'done']);
      await runner.kill();
      commands.refusesAcks = null;
      const before = commands.acks.length;
      await runner.ensureRunning();
      const isRepeated = () => commands.acks.slice(before).some(({ commandId }) => commandId === message.id);
      await runner.waitFor('another acknowledgement', isRepeated);
      await runner.prompt('say after the kill');
      assertReceived(runner, message.id, 1);
    },
  },
  'a command of an unknown type is acknowledged as failed with a reason': {
    todo: 'Give the reason as a sentence.',
    async run(runner) {
      await runner.ensureRunning();
      const { reason } = await runner.ack(runner.queue('coffee.make', { sugar: 2 }), ['failed']);
      assert(reason !== null, 'a reason', reason);
      await runner.prompt('say still here');
    },
  },
  'unknown frames, comments and split frames are handled': {
    why: '2, Common rules, and 5, Live',
    todo: 'Decode the stream as a whole, and parse it line by line.',
    async run(runner) {
      await runner.ensureRunning();
      const { commands } = runner.fake;
      commands.write(': a comment\n\nevent: weather\ndata: {"rain":true}\n\n');
      const text = 'say Grüße, 世界 😀';
      const command = {
        id: 'in-pieces',
        type: 'message',
        sessionId: runner.sessionId,
        createdAt: Date.now(),
        expiresAt: Date.now() + 600_000,
        body: { messageId: 'in-pieces', text, from: { kind: 'person', id: 'operator' } },
        fromTheFuture: { x: 1 },
      };
      const bytes = Buffer.from(`id: 1\nevent: command\ndata: ${JSON.stringify(command)}\n\n`);
      const middleOfCharacter = bytes.indexOf('ü') + 1;
      const pieces = [bytes.subarray(0, 9), bytes.subarray(9, middleOfCharacter), bytes.subarray(middleOfCharacter)];
      await commands.writeInPieces(pieces, PIECE_PAUSE_MS);
      assertMatch('the turn', textsIn(await runner.answer(command)), [text.slice(4)]);
    },
  },
  'a closed or broken stream is reopened, and commands queued meanwhile are carried out once': {
    todo: 'Reconnect, and handle each open command once.',
    async run(runner) {
      await runner.ensureRunning();
      const { commands } = runner.fake;
      for (const [how, frame] of [
        ['bye', 'event: bye\ndata: {"reason":"planned"}\n\n'],
        ['break', 'event: comm'],
      ]) {
        const count = commands.streams.length;
        commands.endStreams(frame);
        const message = commands.queueMessage(runner.sessionId, `say after the ${how}`);
        assertMatch('the turn', textsIn(await runner.answer(message)), [`after the ${how}`]);
        assert(commands.streams.length > count, 'a new stream', 'none');
        assertReceived(runner, message.id, 1);
      }
    },
  },
  'an interrupt of another turn is refused, and the running turn continues': {
    why: '7, Interrupts',
    todo: 'Compare turnId with the open turn.',
    async run(runner) {
      await runner.requireSupport('interrupt');
      const { id } = await runner.startTurn('hang');
      await runner.ack(runner.queue('interrupt', { turnId: `${id}-before` }), ['failed']);
      assertMatch('the turn', runner.turns.find((turn) => turn.id === id)?.state, 'open');
      await runner.ack(runner.queue('interrupt', { turnId: id }), ['done']);
    },
  },
  'unsupported commands are refused with the reason in the status record': {
    todo: 'Give the reason for each unsupported command in takesNot, and in its acknowledgement.',
    async run(runner) {
      await runner.ensureRunning();
      const { takes, takesNot } = runner.status;
      const refused = Object.entries(fieldsOf(takesNot));
      for (const [type, expected] of refused) {
        const { reason } = await runner.ack(runner.queue(type, {}), ['failed']);
        assertMatch(`the reason for ${type}`, reason, textOf(expected));
      }
      const hasReasons = !Array.isArray(takes) || refused.length > 0 || takes.length >= 8;
      assert(hasReasons, 'takesNot beside takes', takesNot);
    },
  },
  'a message with an unsupported attachment is refused and does not reach the agent': {
    why: '7, Attachments, 5',
    todo: 'Refuse a message with unsupported attachments as a whole, with a reason.',
    async run(runner) {
      await runner.ensureRunning();
      const supported = supportedAttachments(runner.status);
      const unsupported = ATTACHMENTS.find(({ mediaType }) => !supported.includes(attachmentKind(mediaType)));
      if (unsupported === undefined) throw new Unsupported('its status record says that it accepts images and files');
      const message = runner.queue('message', {
        messageId: 'with-a-file',
        text: 'say it came without its file',
        from: { kind: 'person', id: 'operator' },
        attachments: [unsupported],
      });
      const { reason } = await runner.ack(message, ['failed']);
      assert(reason !== null, 'a reason', reason);
      assertReceived(runner, message.id, 0);
    },
  },
  'a fenced runner neither reconnects nor acknowledges': {
    todo: 'Stop for good at `fenced`, and use a new id and startedAt in each process.',
    async run(runner) {
      await runner.ensureRunning();
      const { commands } = runner.fake;
      await runner
        .waitFor('every acknowledgement', () => commands.isAllAcknowledged, { timeoutMs: ACK_TIMEOUT_MS })
        .catch(() => undefined);
      const [streams, acks] = [commands.streams.length, commands.acks.length];
      commands.fence();
      await pause(RECONNECT_MS);
      assertMatch('its later streams', commands.streams.slice(streams), []);
      assertMatch('its later acknowledgements', commands.acks.slice(acks), []);
      await runner.kill();
      await runner.prompt('say I am the next one');
      const [before, now] = commands.streams.slice(-2);
      const isNewer = (now?.startedAt ?? 0) > (before?.startedAt ?? 0) && now?.runner !== before?.runner;
      assert(isNewer, 'a later startedAt and another id', [before, now]);
    },
  },
});

export const LIVENESS = checksOf<RunnerTarget>('liveness', '3, Status records, and 7, Commands, 9', {
  'a status record names the kind of agent, the runner and its interval': {
    todo: 'Report kind, versions.protocol, the runner as on the command stream, and everyMs of at most ten minutes.',
    async run(runner) {
      await runner.ensureRunning();
      const { status, everyMs } = runner;
      assert(textOf(status.kind) !== null, 'a kind', status.kind);
      assertMatch('versions.protocol', fieldsOf(status.versions).protocol, PROTOCOL_VERSION);
      const stream = runner.fake.commands.streams.at(-1);
      assertMatch('its runner', status.runner, { id: stream?.runner, startedAt: stream?.startedAt });
      const isValid = everyMs !== null && Number.isInteger(everyMs) && everyMs >= 1 && everyMs <= MAX_EVERY_MS;
      assert(isValid, 'everyMs, at most ten minutes', everyMs);
    },
  },
  'status records arrive at the promised interval': {
    todo: 'Send a status record every everyMs, changed or not.',
    async run(runner) {
      await runner.ensureRunning();
      const count = () => runner.fake.log.statuses().length;
      const before = count();
      const timeoutMs = runner.reportTimeoutMs;
      await runner.waitFor('the next status record', () => count() > before, { timeoutMs });
    },
  },
  'a status record with an open turn names the turn that the events opened': {
    todo: 'Report within everyMs that a turn has started or ended.',
    async run(runner) {
      if (!('openTurnId' in runner.status)) throw new Unsupported('its status record does not speak of the open turn');
      const { id } = await runner.startTurn('hang');
      const options = { timeoutMs: runner.reportTimeoutMs, seen: () => runner.status.openTurnId };
      await runner.waitFor(`openTurnId ${id}`, () => runner.status.openTurnId === id, options);
      await runner.ack(runner.queue('interrupt', { turnId: id }), ['done', 'failed']);
      // A turn that can't be interrupted ends with its runner.
      if (runner.turns.find((turn) => turn.id === id)?.state === 'open') await runner.kill();
      await runner.ensureRunning();
      await runner.waitFor('openTurnId null', () => runner.status.openTurnId === null, options);
    },
  },
});

async function setLogLevel(runner: RunnerTarget, level: string | null, requestId: string, ttlSeconds?: number) {
  const body = { level, by: 'conformance', requestId, ...(ttlSeconds === undefined ? {} : { ttlSeconds }) };
  await runner.ack(runner.fake.commands.queue('log-level.set', null, body), ['done']);
}

async function waitForLevel(runner: RunnerTarget, level: unknown): Promise<void> {
  await runner.waitFor(`a status record with logLevel ${level}`, () => runner.status.logLevel === level, {
    todo: 'Report logLevel in the status record soon after it changed.',
    timeoutMs: runner.reportTimeoutMs,
    seen: () => runner.status.logLevel,
  });
}

export const LOG_LEVEL = checksOf<RunnerTarget>('log level', '7, The log level of a runner', {
  'a log level takes effect, appears in the status record and expires': {
    todo: 'Report the level you write in logLevel.',
    async run(runner) {
      await runner.requireSupport('log-level.set');
      const base = runner.status.logLevel;
      assert(typeof base === 'string', 'logLevel in the status record', base);
      await setLogLevel(runner, 'error', 'wish-1', 1);
      await waitForLevel(runner, 'error');
      await waitForLevel(runner, base);
    },
  },
  'a repeated log-level request is acknowledged without effect': {
    todo: 'Remember the last requestId that you have applied.',
    async run(runner) {
      await runner.requireSupport('log-level.set');
      const base = runner.status.logLevel;
      await setLogLevel(runner, 'error', 'wish-2', 1);
      await waitForLevel(runner, 'error');
      await waitForLevel(runner, base);
      await setLogLevel(runner, 'error', 'wish-2', 60);
      await runner.prompt('say something, so that there is another status record');
      await runner.prompt('background 0.1');
      assertMatch('the level', runner.status.logLevel, base);
    },
  },
  'a change of the log level is logged at every level': {
    todo: 'Write a log record with marker {"kind":"level","level","previous","by"}.',
    async run(runner) {
      await runner.requireSupport('log-level.set');
      await setLogLevel(runner, 'fatal', 'wish-3');
      await setLogLevel(runner, null, 'wish-4');
      const markers = () => runner.fake.log.logs().map(({ marker }) => fieldsOf(marker));
      const isLogged = () => markers().some(({ kind, level }) => kind === 'level' && level === 'fatal');
      await runner.waitFor('a log record with a marker', isLogged);
    },
  },
});

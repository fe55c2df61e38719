import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DemoSource, RestLimiter } from '@interlude/runner/cli/demo/demo-source';
import { readRecording } from '@interlude/runner/cli/recording';
import type { InFlightMessage } from '@interlude/runner/host/message-delivery';
import { createLogger } from '@interlude/runner/logger/logger';
import type { ClaudeSdk } from '@interlude/runner/sources/claude/claude-sdk';
import { ClaudeSource } from '@interlude/runner/sources/claude/claude-source';
import type { ClaudeSession } from '@interlude/runner/sources/claude/conversation';
import { kind as claudeKind } from '@interlude/runner/sources/claude/kind';
import { HooksSource } from '@interlude/runner/sources/hooks/hooks-source';
import { kind as hooksKind } from '@interlude/runner/sources/hooks/kind';
import { describe, expect } from 'vitest';
import { writeLine } from '@/tests/support/recordings';
import type { MemorySourceContext } from '@/tests/support/source-contract';
import { type SourceStage, testSourceContract } from '../../support/source-contract';
import { tempDir } from '../../support/temp-dir';
import { sdkMessages, text } from '../adapters/sdk-messages';

const until = (look: () => unknown) => expect.poll(look, { interval: 10 }).toBeTruthy();
const turnOf = (around: MemorySourceContext | null, sessionId: string) => around?.openWork(sessionId).turn ?? null;

async function claude(): Promise<SourceStage> {
  const { init, assistant, result } = sdkMessages();
  const heard: string[] = [];
  let said: object[] = [];
  let [opened, queries] = [0, 0];
  let wake = () => {};
  const sdk: ClaudeSdk = {
    query({ prompt }) {
      queries += 1;
      said = [];
      let isClosed = false;
      let own = () => {};
      wake = () => own();
      void (async () => {
        for await (const { message } of prompt)
          heard.push(message.content[0]?.type === 'text' ? message.content[0].text : '');
      })();
      return {
        async *[Symbol.asyncIterator]() {
          while (!isClosed) {
            yield* said.splice(0);
            await new Promise<void>((resolve) => {
              own = resolve;
            });
          }
        },
        interrupt: async () => undefined,
        stopTask: async () => {},
        close() {
          isClosed = true;
          own();
        },
      };
    },
  };
  const memory: ClaudeSession = { sessionId: 's', conversationId: 'c', cwd: '/', pid: null, running: false };
  let around: MemorySourceContext | null = null;
  const say = (...messages: object[]) => {
    said.push(...messages);
    wake();
  };
  return {
    open(surroundings) {
      opened += 1;
      around = surroundings;
      const [stored] = [...surroundings.stored].filter(([name]) => name.startsWith('claude-session:'));
      const [inHand] = [...surroundings.stored].filter(([name]) => name.startsWith('claude-in-hand:'));
      return new ClaudeSource({
        sdk,
        context: surroundings,
        memory: stored === undefined ? memory : (JSON.parse(stored[1]) as ClaudeSession),
        inFlight: inHand === undefined ? [] : (JSON.parse(inHand[1]) as InFlightMessage[]),
        env: { HOME: '/nowhere' },
        answerWithinMs: 60_000,
      });
    },
    async begin() {
      await until(() => queries === opened);
      say(init(['u1']), assistant('m1', [text('One')]));
      await until(() => turnOf(around, 's') !== null);
    },
    async finish() {
      say(result({ user_message_uuids: ['u1'] }));
      await until(() => turnOf(around, 's') === null);
    },
    heard: () => heard,
    features: claudeKind.features,
  };
}

async function hooks(): Promise<SourceStage> {
  const home = await tempDir();
  const sessionId = randomUUID();
  const file = join(home, `${sessionId}.jsonl`);
  const say = (line: object) => writeLine({ file, text: JSON.stringify({ uuid: randomUUID(), ...line }) });
  const logger = createLogger({ agentId: 'a', dir: home });
  let around: MemorySourceContext | null = null;
  let source: HooksSource | null = null;
  const hook = (event: string, more: object = {}) =>
    source?.control.hook({
      event,
      input: { session_id: sessionId, transcript_path: file, hook_event_name: event, ...more },
      pid: null,
      // A session starts before its first prompt: lines of the same millisecond count as older.
      at: event === 'SessionStart' ? Date.now() - 100 : null,
      withinMs: null,
      signal: new AbortController().signal,
    });
  return {
    async open(surroundings) {
      around = surroundings;
      source = await HooksSource.open({ context: surroundings, logger });
      return source;
    },
    async begin() {
      await hook('SessionStart', { source: 'startup' });
      await hook('UserPromptSubmit', { prompt: 'Build it' });
      say({ type: 'user', message: { role: 'user', content: 'Build it' }, origin: { kind: 'human' } });
      const content = [{ type: 'text', text: 'Building.' }];
      say({ type: 'assistant', message: { id: 'msg_1', stop_reason: null, content } });
      await until(() => turnOf(around, sessionId) !== null);
    },
    async finish() {
      const content = [{ type: 'text', text: 'Built.' }];
      say({ type: 'assistant', message: { id: 'msg_2', stop_reason: 'end_turn', content } });
      await hook('Stop', { last_assistant_message: 'Built.' });
      await until(() => turnOf(around, sessionId) === null);
    },
    goesOn: true,
    sometimes: ['answer'],
    features: hooksKind.features,
  };
}

async function demo(): Promise<SourceStage> {
  const recording = await readRecording('lib/runner/cli/demo/recordings/test-run.jsonl');
  let around: MemorySourceContext | null = null;
  const isOpen = () => around?.sessionIds.some((id) => turnOf(around, id) !== null);
  return {
    open(surroundings) {
      around = surroundings;
      const agent = { agentId: 'a', recordings: [recording.name], beginsAtMs: 0, restMs: 600_000 };
      const how = { agent, recordings: [recording], restLimiter: new RestLimiter(1, 0), speed: 50 };
      return new DemoSource({ context: surroundings, ...how });
    },
    begin: () => until(isOpen),
    finish: () => until(() => !isOpen()),
  };
}

describe.each([
  ['claude', claude],
  ['hooks', hooks],
  ['demo', demo],
])('the %s source', (_kind, makeStage) => {
  testSourceContract(makeStage);
});

import { fieldsOf, listOf } from '@interlude/protocol/fields';
import { deliverFirstMessage } from '@interlude/runner/host/first-message';
import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import type { CommandOf, Source } from '@interlude/runner/host/source';
import { AcpSource } from '@interlude/runner/sources/acp/acp-source';
import { readSessions } from '@interlude/runner/sources/acp/session-setup';
import { AgentApiSource } from '@interlude/runner/sources/agentapi/agentapi-source';
import { AgUiSource } from '@interlude/runner/sources/agui/agui-source';
import { spawnAppServer } from '@interlude/runner/sources/codex/app-server';
import { CodexSource } from '@interlude/runner/sources/codex/codex-source';
import { OpencodeSource } from '@interlude/runner/sources/opencode/opencode-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { messageTo, QUICK } from '@/tests/support/agentapi-server';
import { AmbientServer } from '@/tests/support/agui-stage';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { ScriptedAcpAgent } from '../../support/acp-agent';
import { AgentApiEmulator } from '../../support/agentapi-server';
import { CodexAppServer } from '../../support/codex-app-server';
import { FakeOpencodeServer } from '../../support/opencode-server';

/** An agent that does not answer yet. */
interface Stage {
  open(surroundings: MemorySourceContext): Source | Promise<Source>;
  /** Resolves once the message waits and certainly was not sent. */
  waits?(source: Source): Promise<void>;
  /** Makes the agent respond. */
  comes(): Promise<void> | void;
  /** Resolves once the first message is answered, if the note may be repeated until then. */
  answered?(around: MemorySourceContext): Promise<void>;
  /** Received prompts, including the note. */
  heard(): string[];
}

const S = 's';
const workspaceNote = 'A note on your workspace.';
const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });

async function acp(): Promise<Stage> {
  let isThere = false;
  const past: object[] = [];
  const agent = await ScriptedAcpAgent.open({ past, answer: () => (isThere ? undefined : null) });
  return {
    async open(surroundings) {
      for (const text of agent.prompts) {
        past.push({ sessionUpdate: 'user_message_chunk', content: { type: 'text', text } });
      }
      const fresh = { sessionId: S, nativeId: null, note: null, cwd: process.cwd(), pid: null, running: false };
      return new AcpSource({
        memory: (await readSessions(surroundings as never))[0] ?? fresh,
        inFlight: await InFlightMessages.restore(surroundings, S),
        ...{ context: surroundings, command: agent.command, env: { PATH: process.env.PATH }, answerWithinMs: 60_000 },
        workspaceNote,
      });
    },
    comes() {
      isThere = true;
    },
    heard: () => agent.prompts,
  };
}

async function codex(): Promise<Stage> {
  const server = new CodexAppServer();
  server.silent.add('initialize');
  const program = { command: await server.program(), cwd: process.cwd(), env: process.env };
  return {
    open: (around) =>
      new CodexSource({
        ...{ context: around, own: { sessionId: S, cwd: process.cwd(), params: {}, workspaceNote } },
        open: (listener) => spawnAppServer(program, listener),
      }),
    comes: () => void server.silent.delete('initialize'),
    heard: () =>
      server.requests
        .filter(({ method }) => method === 'turn/start' || method === 'thread/queue/add')
        .map(({ params: { additionalContext, input } }) => {
          const { value } = fieldsOf(fieldsOf(additionalContext).interlude);
          return [value, fieldsOf(listOf(input)[0]).text].filter(Boolean).join('\n\n');
        }),
  };
}

async function opencode(): Promise<Stage> {
  const server = new FakeOpencodeServer();
  await server.start();
  await server.kill();
  const address = { url: server.url, user: 'opencode', password: null };
  return {
    open: (surroundings) =>
      OpencodeSource.open({
        ...{ address, shownUrl: server.url, context: surroundings, session: S, workspaceNote },
        newRunId: () => crypto.randomUUID(),
      }),
    async comes() {
      await server.start();
      onTestFinished(() => server.kill());
    },
    heard: () =>
      server.asked
        .filter(({ path }) => path.endsWith('/prompt_async'))
        .map(({ body }) =>
          listOf(fieldsOf(body).parts)
            .map((part) => fieldsOf(part).text)
            .join('\n\n'),
        ),
  };
}

async function agui(): Promise<Stage> {
  const server = await AmbientServer.start();
  server.refusal = { status: 503, body: 'not yet' };
  server.onRun = (run) => run.reply('Done.');
  const how = { url: server.url, sessionId: S, history: 'none' as const, headers: {}, workspaceNote };
  return {
    open: (surroundings) => new AgUiSource({ ...how, context: surroundings, waits: { longestMs: 60_000 } }),
    waits: (source) => settled(() => source.sessions[0]?.trouble).toContain('A message is queued'),
    answered: (around) => settled(() => around.stored.get(`agui-history:${S}`)).toContain('Done.'),
    comes() {
      server.refusal = null;
      server.inputs.length = 0;
    },
    heard: () => server.inputs.map(({ messages }) => String(messages.at(-1)?.content)),
  };
}

async function agentapi(): Promise<Stage> {
  const server = await AgentApiEmulator.start();
  server.replies('Welcome');
  await server.stop();
  return {
    open: (surroundings) =>
      new AgentApiSource({
        context: surroundings,
        url: server.url,
        sessionId: S,
        headers: {},
        waits: QUICK,
        workspaceNote,
      }),
    async comes() {
      server.onMessage = () => setImmediate(() => server.replies('Done.'));
      await server.listen();
    },
    heard: () => server.typed,
  };
}

describe.each([
  ['acp', acp],
  ['codex', codex],
  ['opencode', opencode],
  ['agui', agui],
  ['agentapi', agentapi],
])('what --prompt says to an agent of the kind %s', (_kind, makeStage) => {
  test('is delivered once across kills, after the workspace note', async () => {
    const stage = await makeStage();
    let around = new MemorySourceContext();
    let source = await begun();
    const told = () => around.events.filter(({ type, role }) => type === 'TEXT_MESSAGE_START' && role === 'user');

    void prompt();
    await settled(told).toHaveLength(1);
    await stage.waits?.(source);
    await killed();
    expect(stage.heard()).not.toContain('Build it.');
    await stage.comes();
    source = await begun();
    await prompt();
    await settled(stage.heard).toEqual([`${workspaceNote}\n\nBuild it.`]);

    await stage.answered?.(around);
    await killed();
    source = await begun();
    await prompt();
    expect(told()).toHaveLength(1);
    expect(await source.deliver?.(messageTo('m2', 'Test it.') as CommandOf<'message'>, false)).toEqual({
      state: 'delivered',
    });
    await settled(stage.heard).toEqual([`${workspaceNote}\n\nBuild it.`, 'Test it.']);

    async function begun(): Promise<Source> {
      const opened = await stage.open(around);
      onTestFinished(() => opened.close(0, 'the test is over'));
      await opened.start();
      return opened;
    }
    function prompt(): Promise<void> {
      const speaker = source;
      const say = async (command: CommandOf<'message'>, again: boolean) =>
        (await speaker.deliver?.(command, again)) ?? { state: 'failed' as const };
      return deliverFirstMessage({ sessionId: S, text: 'Build it.' }, { context: around, deliver: say });
    }
    /** Simulates SIGKILL: later output and effects of the source are ignored. */
    async function killed(): Promise<void> {
      around.deafen();
      around = new MemorySourceContext(undefined, around);
      await source.close(0, 'killed');
    }
  });
});

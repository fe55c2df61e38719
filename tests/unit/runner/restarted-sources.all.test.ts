import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import { AcpSource } from '@interlude/runner/sources/acp/acp-source';
import { spawnAppServer } from '@interlude/runner/sources/codex/app-server';
import { CodexSource } from '@interlude/runner/sources/codex/codex-source';
import { expect, onTestFinished, test } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { ScriptedAcpAgent } from '../../support/acp-agent';
import { CodexAppServer } from '../../support/codex-app-server';

function keepingReasons() {
  const reasons: string[] = [];
  const around = Object.assign(new MemorySourceContext(), { failRunner: (why: string) => void reasons.push(why) });
  return { around, reasons };
}

test('CodexSource gives up an unresponsive child after five starts', async () => {
  const server = new CodexAppServer();
  server.silent.add('initialize');
  const { around, reasons } = keepingReasons();
  const program = { command: await server.program(), cwd: process.cwd(), env: process.env };
  const source = new CodexSource({
    context: around,
    own: { sessionId: 's', cwd: process.cwd(), params: {} },
    open: (listener) => spawnAppServer(program, listener),
    answerWithinMs: 50,
  });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  await expect.poll(() => reasons.join()).toContain('Codex exited 5 times');
});

test('AcpSource gives up after five exits within a minute and ends its session', async () => {
  const agent = await ScriptedAcpAgent.open({ answer: () => null });
  const { around, reasons } = keepingReasons();
  const source = new AcpSource({
    context: around,
    memory: { sessionId: 's', nativeId: null, note: null, cwd: process.cwd(), pid: null, running: false },
    inFlight: await InFlightMessages.restore(around, 's'),
    command: agent.command,
    env: { PATH: process.env.PATH },
    answerWithinMs: 60_000,
  });
  onTestFinished(() => source.close(0, 'the test is over'));
  await source.start();
  for (let start = 1; start <= 5; start++) {
    await expect.poll(() => agent.starts, { interval: 5 }).toBe(start);
    agent.hangUp();
  }
  await expect.poll(() => reasons.join()).toMatch(/exited 5 times within 60 s; last reason: exited with code 0/);
  expect(around.events.filter(({ name }) => name === 'session:ended')).toHaveLength(1);
});

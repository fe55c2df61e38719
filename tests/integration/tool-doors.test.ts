import { spawnSync } from 'node:child_process';
import { controlPath, writeControlFile } from '@interlude/runner/host/control-file';
import type { ToolCaller, ToolOwner } from '@interlude/runner/host/control-port';
import { ControlPort } from '@interlude/runner/host/control-port';
import { LevelSwitch } from '@interlude/runner/logger/level-switch';
import { forwardCalls, runnerPortsIn } from '@interlude/runner/mcp/forward-call';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../support/temp-dir';

/** `interlude mcp` with several runners of one data folder: it asks each and calls one. */

const REPORT = { state: 'idle', summary: 'I wait.' };
const MADE = { client: 'codex-mcp-client', ids: ['call-1'] };

/** Runners with these answers, by agent name. */
async function runners(owners: Record<string, ToolOwner['at'] | { at: number; refusal: string }>) {
  const dataDir = await tempDir();
  const reported: string[] = [];
  const asked: ToolCaller[] = [];
  for (const [name, answer] of Object.entries(owners)) {
    const tools = { report: async () => void reported.push(name), obligations: () => [], reply: async () => null };
    const owner: ToolOwner =
      answer === null
        ? { at: null, refusal: 'not followed' }
        : typeof answer === 'number'
          ? { at: answer, tools }
          : answer;
    const port = await ControlPort.open({
      file: controlPath(dataDir, name),
      handlers: {
        obligations: () => [],
        hookFatal: () => undefined,
        logLevel: new LevelSwitch(undefined),
        toolOwner: async (caller) => {
          asked.push(caller);
          return owner;
        },
      },
    });
    onTestFinished(() => port.close());
  }
  const callTool = forwardCalls(() => runnerPortsIn(dataDir), [10, 20, 30]);
  return { dataDir, reported, asked, report: () => callTool('report_status', REPORT, MADE) };
}

test('a call goes to the runner of the nearest agent above it, with its evidence', async () => {
  const { report, reported, asked } = await runners({ outer: 2, inner: 1, other: null });
  expect(await report()).toEqual({ text: 'Reported: idle.', isError: false });
  expect(reported).toEqual(['inner']);
  expect(asked[0]).toEqual({
    ...{ tool: 'report_status', input: REPORT, pids: [10, 20, 30], ticketOf: null },
    ...MADE,
  });
});

test('a call that the nearest runner refuses goes to no other', async () => {
  const { report, reported } = await runners({ outer: 2, inner: { at: 1, refusal: 'no session makes this call' } });
  expect(await report()).toEqual({ text: 'Interlude refused: no session makes this call', isError: true });
  expect(reported).toEqual([]);
});

test('a call goes to the one of two runners of an agent whose session makes it, and to none if both do', async () => {
  const one = await runners({ a: 1, b: { at: 1, refusal: 'no session makes this call' } });
  expect(await one.report()).toMatchObject({ isError: false });
  expect(one.reported).toEqual(['a']);
  const both = await runners({ a: 1, b: 1 });
  expect(await both.report()).toMatchObject({
    text: expect.stringContaining('more than one runner follows this agent'),
    isError: true,
  });
  expect(both.reported).toEqual([]);
});

test('an agent without a runner gets an explanation, and a dead runner’s port is not called', async () => {
  const { report, dataDir } = await runners({ a: null, b: null });
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  await writeControlFile(controlPath(dataDir, 'gone'), { url: 'http://127.0.0.1:9', secret: 'x', pid: gone });
  expect(await runnerPortsIn(dataDir)).toHaveLength(2);
  expect(await report()).toEqual({ text: 'Interlude refused: not followed', isError: true });
  const nobody = await (await runners({})).report();
  expect(nobody).toMatchObject({ text: expect.stringContaining('not running'), isError: true });
});

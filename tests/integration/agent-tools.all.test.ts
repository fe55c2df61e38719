import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import type { ToolServer } from '@interlude/runner/mcp/agent-tools';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../support/cli';
import { LocalDashboard } from '../support/local-dashboard';
import { tempDir } from '../support/temp-dir';
import { call, connectStdio, connectTransport, pollValue, toolCallingAgent } from '../support/tool-user';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

test('report_status is accepted outside a turn, and refused with the reason when malformed', async () => {
  const { folder, report } = await toolCallingAgent(dashboard);
  const client = await connectStdio(folder);
  const long = await call(client, 'report_status', { state: 'idle', summary: 'x'.repeat(161) });
  expect(long.isError).toBe(true);
  expect(long.text).toContain('160');
  expect(await call(client, 'report_status', { state: 'idle', summary: 'x', mood: 'good' })).toMatchObject({
    isError: true,
  });
  await call(client, 'report_status', { state: 'complete', summary: 'Done.', link: 'https://example.org/1' });
  await pollValue(report).toMatchObject({ state: 'complete', link: 'https://example.org/1', turnId: null });
});

test('interlude mcp and the control port refuse tools to a process without a runner', async () => {
  const refusal = await call(await connectStdio(await tempDir()), 'list_obligations');
  expect(refusal.isError).toBe(true);
  expect(refusal.text).toContain('not running');
  const { folder } = await toolCallingAgent(dashboard);
  const control = await readControlFile(controlPath(folder, 'hooks'));
  const port = async (path: string, secret = control?.secret) => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`${control?.url}${path}`, { method: 'POST', headers, body: '{}' });
    return [response.status, await response.json()];
  };
  const notFollowed = { error: 'no session of this agent is followed here', at: null };
  expect(await port('/tools/list_obligations?pid=1,2147483000')).toEqual([404, notFollowed]);
  expect(await port('/tools/list_obligations')).toEqual([404, notFollowed]);
  expect(await port(`/tools/nothing?pid=${process.pid}`)).toEqual([404, { error: 'unknown tool nothing' }]);
  expect(await port(`/tools/list_obligations?pid=2147483000,${process.pid}`)).toEqual([
    200,
    { text: 'No message waits for a reply from you.', isError: false },
  ]);
  expect(await port(`/tools/list_obligations?pid=${process.pid}`, 'wrong')).toMatchObject([401, {}]);
});

test('interlude mcp opens one session with its ticket, without the data folder', async () => {
  const { report, toolServer } = await toolCallingAgent(dashboard, { by: 'ticket' });
  const { command, args, env } = toolServer() as ToolServer;
  expect(JSON.stringify(args)).not.toContain(env.INTERLUDE_TOOLS_TICKET);
  const client = await connectTransport(new StdioClientTransport({ command, args, env }));
  expect(await call(client, 'report_status', { state: 'working', summary: 'I build.' })).toMatchObject({
    isError: false,
  });
  await pollValue(report).toMatchObject({ state: 'working' });
  const wrong = { ...env, INTERLUDE_TOOLS_TICKET: 'x'.repeat(43) };
  const stranger = await connectTransport(new StdioClientTransport({ command, args, env: wrong }));
  expect(await call(stranger, 'list_obligations')).toMatchObject({ isError: true });
});

test('interlude mcp finds the session of an MCP server that another process started, for its own call only', async () => {
  const listensAt = dashboard.url;
  const alone = await toolCallingAgent(dashboard, { by: 'process', listensAt });
  expect(await call(await connectStdio(alone.folder), 'list_obligations')).toMatchObject({ isError: false });
  const shared = await toolCallingAgent(dashboard, { by: 'call', listensAt });
  const client = await connectStdio(shared.folder);
  const unseen = await call(client, 'list_obligations');
  expect(unseen).toEqual({
    text: 'Interlude refused: no session of this runner is making this call',
    isError: true,
  });
  await shared.emit({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'interlude_list_obligations' });
  expect(await call(client, 'list_obligations')).toMatchObject({ isError: false });
  const elsewhere = await toolCallingAgent(dashboard, { by: 'process', listensAt: 'http://127.0.0.1:9' });
  expect(await call(await connectStdio(elsewhere.folder), 'list_obligations')).toMatchObject({ isError: true });
});

test('interlude mcp exits at the end of its input, and prints only protocol messages', async () => {
  const { exitCode, stdout } = await runCli(['mcp'], { INTERLUDE_DATA_DIR: await tempDir() });
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
  expect(await runCli(['mcp', 'more'])).toMatchObject({ exitCode: 2 });
});

import { newMcpServer } from '@interlude/runner/mcp/mcp-server';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LocalDashboard } from '../support/local-dashboard';
import { call, connectStdio, connectTransport, pollValue, toolCallingAgent } from '../support/tool-user';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

describe('an agent with Interlude’s tools', () => {
  test('reports, reads its pending replies and replies in its own session through `interlude mcp`', async () => {
    const { folder, emit, ask, obligations, texts, report } = await toolCallingAgent(dashboard);
    const client = await connectStdio(folder);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['report_status', 'list_obligations', 'reply']);
    expect(tools[0]?.inputSchema).toMatchObject({
      additionalProperties: false,
      required: ['state', 'summary'],
      properties: { state: { enum: ['working', 'idle', 'complete', 'failure'] }, summary: { maxLength: 160 } },
    });
    const messageId = await ask('How far are you?');
    await emit({ type: 'RUN_STARTED', threadId: 's', runId: 'r1' });
    expect((await call(client, 'list_obligations')).text).toContain(`"messageId": "${messageId}"`);
    const unknown = await call(client, 'reply', { messageId: 'nobody', text: 'Half way.' });
    expect(unknown).toMatchObject({ isError: true });
    expect(unknown.text).toContain(messageId);
    expect(await call(client, 'reply', { messageId, text: 'Half way.' })).toMatchObject({ isError: false });
    expect(await call(client, 'reply', { messageId, text: 'Half way.' })).toMatchObject({ isError: true });
    expect(await call(client, 'report_status', { state: 'working', summary: 'Half way.' })).toMatchObject({
      isError: false,
    });
    await pollValue(report).toMatchObject({ state: 'working', summary: 'Half way.', turnId: 'r1' });
    await pollValue(texts).toMatchObject([{ text: 'Half way.' }]);
    expect(await obligations()).toEqual([messageId]);
    await emit({ type: 'RUN_FINISHED', threadId: 's', runId: 'r1', outcome: { type: 'success' } });
    await pollValue(obligations).toEqual([]);
    expect(await texts()).toHaveLength(1);
  });

  test('has replied when its turn ends, also when a task woke it and the message arrived meanwhile', async () => {
    const { emit, ask, obligations, callTool } = await toolCallingAgent(dashboard);
    await emit({
      ...{ type: 'RUN_STARTED', threadId: 's', runId: 'r1' },
      metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] }, userMessageIds: [] } },
    });
    const messageId = await ask('And now?');
    const reply = { messageId, text: 'The poll has failed.' };
    expect(await callTool('reply', reply, { client: null, ids: [] })).toMatchObject({ isError: false });
    await emit({ type: 'RUN_FINISHED', threadId: 's', runId: 'r1', outcome: { type: 'success' } });
    await pollValue(obligations).toEqual([]);
  });

  test('has the same tools in the runner’s process', async () => {
    const { callTool, ask } = await toolCallingAgent(dashboard);
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const server = await newMcpServer(callTool);
    await server.connect(ours);
    const client = await connectTransport(theirs);
    const messageId = await ask('Are you there?');
    expect((await call(client, 'list_obligations')).text).toContain(messageId);
    expect(await call(client, 'reply', { messageId, text: 'Yes.' })).toMatchObject({ isError: false });
    expect((await call(client, 'list_obligations')).text).toContain('No message waits');
  });
});

import { expect, test } from 'vitest';
import { settled, startAgentApiSource } from '@/tests/support/agentapi-server';
import { AgentApiEmulator, menu } from '../../support/agentapi-server';

test('AgentApiSource confirms no menu whose selection does not move', async () => {
  const server = await AgentApiEmulator.start();
  server.replies('Welcome');
  const { say, requests, choose } = await startAgentApiSource({}, server);
  await say('Clean up');
  menu(server, 'Do you want to run rm -r build?', ['Yes', 'Yes, for all rm commands', 'No'], () => {});
  server.onKeys = () => {};
  server.still();
  await settled(requests).toHaveLength(1);
  expect((await choose('3')).reason).toContain('nothing was confirmed');
  expect(server.keys).not.toContain('\r');
  expect(requests()).toHaveLength(1);
});

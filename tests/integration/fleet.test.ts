import type { SessionList } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectFleet, type FleetAgent, writeFleet } from '../support/fleet';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;
let fleet: FleetAgent[];
let disconnect: () => void;

beforeAll(async () => {
  dashboard = await LocalDashboard.start();
  fleet = await writeFleet(dashboard, { agents: 6, sessions: 15, longest: 10 });
  disconnect = await connectFleet(dashboard, fleet);
});
afterAll(async () => {
  disconnect?.();
  await dashboard?.close();
});

const states = async () => {
  const { sessions } = await dashboard.request<SessionList>('/sessions?limit=100');
  return Object.fromEntries(sessions.map(({ id, state }) => [id, state]));
};

test('the fleet of the tests has the states that it reports, and its agents obey', async () => {
  const sessions = fleet.flatMap((agent) => agent.sessions);
  expect(sessions).toHaveLength(16);
  expect(await states()).toEqual(Object.fromEntries(sessions.map(({ id, state }) => [id, state])));
  const asking = sessions[0]?.id ?? '';
  await dashboard.request(`/sessions/${asking}/requests/${asking}-last-asks`, { behavior: 'allow' });
  await expect.poll(states).toMatchObject({ [asking]: 'working' });
});

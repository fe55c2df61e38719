import { expect, vi } from 'vitest';
import type { AccessStage, Headers } from './access-stage';

/**
 * Checks that credentials are answered with 503 while every read of the database ends in `failure`, that the
 * installation's own token is not, and that all are let in again afterwards.
 */
export async function expectUnavailable(stage: AccessStage, failure: () => Promise<never>): Promise<void> {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const { id: _, ...known } = await stage.token({ role: 'viewer' });
  const { id: __, ...unseen } = await stage.token({ role: 'viewer' });
  const person = await stage.browser();
  expect(await stage.status('/me', { as: known })).toBe(200);
  const { reader } = stage.parts.database;
  for (const method of ['execute', 'batch'] as const) vi.spyOn(reader, method).mockImplementation(failure);
  for (const headers of [unseen, known, person]) {
    const response = await firstRefusal(stage, headers);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({ error: { code: 'unavailable' } });
  }
  expect(await stage.status('/me', { as: stage.owner })).toBe(200);
  vi.restoreAllMocks();
  for (const headers of [unseen, known, person]) expect(await stage.status('/me', { as: headers })).toBe(200);
}

/** A credential that was looked up counts for a moment. */
function firstRefusal(stage: AccessStage, headers: Headers): Promise<Response> {
  const look = async () => {
    const response = await stage.send('/api/v1/me', { as: headers });
    return response.status !== 200 && response;
  };
  return vi.waitUntil(look, { interval: 50 });
}

import { describe, expect, test } from 'vitest';
import { allowOpaqueOrigin, preflightResponse } from '@/lib/server/access/request-origin';

const ask = (method: string, headers: Record<string, string>, path = '/api/v1/sessions') =>
  new Request(`http://live.test${path}`, { method, headers });
const before = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };

describe('a sandboxed frame', () => {
  test('passes the preflight for a request with its token', () => {
    const response = preflightResponse(ask('OPTIONS', { origin: 'null', ...before }));
    expect(response?.status).toBe(204);
    expect(response?.headers.get('access-control-allow-origin')).toBe('*');
    expect(response?.headers.get('access-control-allow-headers')).toContain('authorization');
    expect(response?.headers.get('access-control-allow-credentials')).toBeNull();
  });

  test('may read the response, including errors', () => {
    const refusal = allowOpaqueOrigin(ask('GET', { origin: 'null' }), new Response(null, { status: 401 }));
    expect(refusal.headers.get('access-control-allow-origin')).toBe('*');
    expect(refusal.headers.get('vary')).toContain('origin');
  });
});

describe('grants nothing to other requests', () => {
  test.each([
    ['another origin', { origin: 'https://console.test' }],
    ['one that sends a cookie', { origin: 'null', cookie: 'interlude=x' }],
    ['our own pages', {}],
  ])('%s', (_who, headers) => {
    expect(preflightResponse(ask('OPTIONS', { ...before, ...headers }))).toBeNull();
    const response = allowOpaqueOrigin(ask('GET', headers), new Response());
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('outside the API', () => {
    const response = allowOpaqueOrigin(ask('GET', { origin: 'null' }, '/sign-in'), new Response());
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('with OPTIONS that is no preflight', () => {
    expect(preflightResponse(ask('OPTIONS', { origin: 'null' }))).toBeNull();
  });
});

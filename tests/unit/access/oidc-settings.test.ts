import { AppError } from '@interlude/protocol/errors';
import { describe, expect, test } from 'vitest';
import { oidcSettings } from '@/lib/server/access/oidc/oidc-settings';

const ENOUGH = {
  INTERLUDE_OIDC_ISSUER: 'https://id.example.com/realms/acme',
  INTERLUDE_OIDC_CLIENT_ID: 'interlude',
  INTERLUDE_OIDC_CLIENT_SECRET: ' secret ',
  INTERLUDE_OIDC_VIEWER_GROUPS: '*',
  INTERLUDE_PUBLIC_URL: 'https://Interlude.example.com:443/',
};

const refusalOf = (env: Record<string, string | undefined>) => {
  try {
    oidcSettings({ ...ENOUGH, ...env });
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
  return null;
};

describe('OIDC settings', () => {
  test('are null if nothing is set', () => {
    expect(oidcSettings({})).toBeNull();
    expect(oidcSettings({ INTERLUDE_OIDC_ISSUER: ' ', INTERLUDE_PUBLIC_URL: 'https://x.example' })).toBeNull();
  });

  test('need few variables', () => {
    expect(oidcSettings(ENOUGH)).toEqual({
      issuer: 'https://id.example.com/realms/acme',
      clientId: 'interlude',
      clientSecret: 'secret',
      clientAuth: null,
      scopes: 'openid profile email',
      groupsClaim: 'groups',
      adminGroups: [],
      operatorGroups: [],
      viewerGroups: ['*'],
      firstAdmin: null,
      publicUrl: 'https://interlude.example.com',
    });
  });

  test('read every variable', () => {
    const settings = oidcSettings({
      ...ENOUGH,
      INTERLUDE_OIDC_CLIENT_AUTH: 'post',
      INTERLUDE_OIDC_SCOPES: 'openid, groups  email',
      INTERLUDE_OIDC_GROUPS_CLAIM: 'realm_access.roles',
      INTERLUDE_OIDC_ADMIN_GROUPS: 'admins, site owners ,,',
      INTERLUDE_OIDC_OPERATOR_GROUPS: '/acme/dev',
      INTERLUDE_FIRST_ADMIN: 'ada@example.com',
      INTERLUDE_PUBLIC_URL: 'https://example.com/interlude/',
    });
    expect(settings).toMatchObject({
      clientAuth: 'post',
      scopes: 'openid groups email',
      groupsClaim: 'realm_access.roles',
      adminGroups: ['admins', 'site owners'],
      operatorGroups: ['/acme/dev'],
      firstAdmin: 'ada@example.com',
      publicUrl: 'https://example.com/interlude',
    });
  });

  test.each([
    ['INTERLUDE_OIDC_ISSUER', ''],
    ['INTERLUDE_OIDC_ISSUER', 'id.example.com'],
    ['INTERLUDE_OIDC_ISSUER', 'http://id.example.com'],
    ['INTERLUDE_OIDC_ISSUER', 'http://localhost.example.com'],
    ['INTERLUDE_OIDC_ISSUER', 'https://id.example.com/.well-known/openid-configuration'],
    ['INTERLUDE_OIDC_ISSUER', 'https://id.example.com/?tenant=1'],
    ['INTERLUDE_OIDC_ISSUER', 'https://me:pass@id.example.com'],
    ['INTERLUDE_OIDC_CLIENT_ID', ''],
    ['INTERLUDE_OIDC_CLIENT_SECRET', undefined],
    ['INTERLUDE_OIDC_CLIENT_AUTH', 'header'],
    ['INTERLUDE_OIDC_SCOPES', 'profile email'],
    ['INTERLUDE_PUBLIC_URL', undefined],
    ['INTERLUDE_PUBLIC_URL', 'interlude.example.com'],
    ['INTERLUDE_PUBLIC_URL', 'ftp://interlude.example.com'],
    ['INTERLUDE_PUBLIC_URL', 'https://interlude.example.com/#x'],
  ])('name the invalid variable: %s as %j', (name, value) => {
    const refusal = refusalOf({ [name]: value });
    expect(refusal).toMatch(new RegExp(`^${name} [^\n]+\\.$`));
  });

  test('require the base path in the public URL', () => {
    const at = (INTERLUDE_PUBLIC_URL: string) => refusalOf({ INTERLUDE_PUBLIC_URL, INTERLUDE_BASE_PATH: '/interlude' });
    expect(at('https://example.com/interlude/')).toBeNull();
    expect(at('https://example.com')).toMatch(/^INTERLUDE_PUBLIC_URL does not end in \/interlude, [^\n]+\.$/);
    expect(at('https://example.com/tools/interlude')).toContain('does not end in /interlude');
  });

  test('repeat no secret in an error', () => {
    expect(refusalOf({ INTERLUDE_OIDC_ISSUER: 'https://me:pass@id.example.com' })).not.toContain('pass@');
  });

  test('allow plain http on this machine only', () => {
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      expect(refusalOf({ INTERLUDE_OIDC_ISSUER: `http://${host}:9000` })).toBeNull();
    }
  });

  test('require a group that grants a role', () => {
    expect(refusalOf({ INTERLUDE_OIDC_VIEWER_GROUPS: ' , ' })).toContain('no one could sign in');
    expect(refusalOf({ INTERLUDE_OIDC_VIEWER_GROUPS: '', INTERLUDE_FIRST_ADMIN: 'ada' })).toBeNull();
  });
});

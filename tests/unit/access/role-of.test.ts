import { describe, expect, test } from 'vitest';
import { refreshedRole, roleFromClaims } from '@/lib/server/access/oidc/person-claims';

const SETTINGS = {
  groupsClaim: 'groups',
  adminGroups: ['admins'],
  operatorGroups: ['on call', '/acme/dev'],
  viewerGroups: ['staff'],
  firstAdmin: null,
};
const inGroups = (groups: unknown) => ({ sub: 'ada', groups });

describe('a role from groups', () => {
  test('is the highest that any group grants', () => {
    expect(roleFromClaims(inGroups(['staff', 'elsewhere', 'admins']), SETTINGS)).toBe('admin');
    expect(roleFromClaims(inGroups(['staff', '/acme/dev']), SETTINGS)).toBe('operator');
    expect(roleFromClaims(inGroups(['staff']), SETTINGS)).toBe('viewer');
  });

  test('is null without a granting group', () => {
    for (const groups of [
      undefined,
      null,
      [],
      ['elsewhere'],
      7,
      {},
      { admins: true },
      [['admins']],
      [{ name: 'admins' }],
    ]) {
      expect(roleFromClaims(inGroups(groups), SETTINGS)).toBeNull();
    }
  });

  test('needs the exact group name', () => {
    for (const name of ['Admins', ' admins', 'admins,staff', '/admins', 'admin']) {
      expect(roleFromClaims(inGroups([name]), SETTINGS)).toBeNull();
    }
  });

  test('accepts a single group as a string', () => {
    expect(roleFromClaims(inGroups('on call'), SETTINGS)).toBe('operator');
    expect(roleFromClaims(inGroups('staff admins'), SETTINGS)).toBeNull();
  });

  test('may be granted to everyone, and no group can claim that name', () => {
    expect(roleFromClaims({ sub: 'ada' }, { ...SETTINGS, viewerGroups: ['*'] })).toBe('viewer');
    expect(roleFromClaims(inGroups(['admins']), { ...SETTINGS, viewerGroups: ['*'] })).toBe('admin');
    expect(roleFromClaims(inGroups(['*']), SETTINGS)).toBeNull();
  });

  test('is read from the configured claim, dotted or not', () => {
    const nested = { ...SETTINGS, groupsClaim: 'realm_access.roles' };
    expect(roleFromClaims({ sub: 'ada', realm_access: { roles: ['admins'] } }, nested)).toBe('admin');
    expect(
      roleFromClaims({ sub: 'ada', 'realm_access.roles': ['staff'], realm_access: { roles: ['admins'] } }, nested),
    ).toBe('viewer');
    expect(roleFromClaims({ sub: 'ada', realm_access: 'admins' }, nested)).toBeNull();
    const address = { ...SETTINGS, groupsClaim: 'https://acme.example/groups' };
    expect(roleFromClaims({ sub: 'ada', 'https://acme.example/groups': ['admins'] }, address)).toBe('admin');
    for (const groupsClaim of ['constructor.name', '__proto__', 'toString', '']) {
      expect(
        roleFromClaims({ sub: 'ada' }, { ...SETTINGS, groupsClaim, viewerGroups: ['Object', 'toString'] }),
      ).toBeNull();
    }
  });
});

describe('the first admin', () => {
  const byEmail = { ...SETTINGS, firstAdmin: 'Ada@example.com' };

  test('is recognized by a verified address', () => {
    expect(roleFromClaims({ sub: '1', email: 'ada@Example.com', email_verified: true }, byEmail)).toBe('admin');
    for (const email_verified of [undefined, false, null, 1, 'true', 'false']) {
      expect(roleFromClaims({ sub: '1', email: 'ada@example.com', email_verified }, byEmail)).toBeNull();
    }
  });

  test('is not a person with a similar address', () => {
    const kelvin = { ...SETTINGS, firstAdmin: 'k@example.com' };
    expect(roleFromClaims({ sub: '1', email: '\u212A@example.com', email_verified: true }, kelvin)).toBeNull();
    expect(roleFromClaims({ sub: '1', email: ['ada@example.com'], email_verified: true }, byEmail)).toBeNull();
    expect(roleFromClaims({ sub: '1', email: undefined, email_verified: true }, byEmail)).toBeNull();
  });

  test('is recognized by an exact subject', () => {
    const bySubject = { ...SETTINGS, firstAdmin: 'F3a9' };
    expect(roleFromClaims({ sub: 'F3a9' }, bySubject)).toBe('admin');
    expect(roleFromClaims({ sub: 'f3a9' }, bySubject)).toBeNull();
  });
});

describe('a refreshed role', () => {
  const email = 'ada@example.com';
  const byEmail = { ...SETTINGS, firstAdmin: email };
  const everybody = { ...SETTINGS, viewerGroups: ['*'] };

  test('stays if the claims don’t decide', () => {
    expect(refreshedRole({ sub: 'ada' }, SETTINGS, null)).toBeUndefined();
    expect(refreshedRole({ sub: 'ada' }, everybody, null)).toBeUndefined();
    for (const silent of [{}, { email }, { email_verified: true }]) {
      expect(refreshedRole({ ...inGroups(['staff']), ...silent }, byEmail, email)).toBeUndefined();
    }
  });

  test('follows the claims if they decide', () => {
    for (const groups of [[], null, ['elsewhere']]) {
      expect(refreshedRole(inGroups(groups), SETTINGS, null)).toBeNull();
    }
    expect(refreshedRole(inGroups(['staff']), byEmail, 'vera@example.com')).toBe('viewer');
    expect(refreshedRole({ ...inGroups(['staff']), email: 'new@example.com' }, byEmail, email)).toBe('viewer');
    expect(refreshedRole({ ...inGroups(['staff']), email, email_verified: false }, byEmail, email)).toBe('viewer');
    expect(refreshedRole({ ...inGroups([]), email, email_verified: true }, byEmail, null)).toBe('admin');
  });
});

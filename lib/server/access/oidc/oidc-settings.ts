import { isBeneath } from '@interlude/protocol/base-path.mjs';
import { AppError } from '@interlude/protocol/errors';

/** Group that contains everyone the provider signs in. */
export const EVERYBODY = '*';

/** Settings of the identity provider, and roles by group. */
export interface OidcSettings {
  /** The configured issuer, which must equal the one that the provider reports. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Method of sending the client secret; null for the provider's preference. */
  clientAuth: 'basic' | 'post' | null;
  scopes: string;
  /** Claim with a person's groups. Dots may descend into objects: `realm_access.roles`. */
  groupsClaim: string;
  adminGroups: readonly string[];
  operatorGroups: readonly string[];
  viewerGroups: readonly string[];
  /** Email address or subject of the person who is admin regardless of groups; null for none. */
  firstAdmin: string | null;
  /** Public URL of this server, without trailing slash. */
  publicUrl: string;
}

type Env = Record<string, string | undefined>;

/**
 * Reads the provider's settings; null without an issuer. Start-up code copies the content of
 * INTERLUDE_OIDC_CLIENT_SECRET_FILE into INTERLUDE_OIDC_CLIENT_SECRET.
 *
 * @throws AppError `unavailable`, naming the variable: a server with invalid sign-in settings must not start
 */
export function oidcSettings(env: Env): OidcSettings | null {
  const issuer = text(env, 'INTERLUDE_OIDC_ISSUER');
  if (issuer === '') {
    const other = Object.keys(env).find((name) => name.startsWith('INTERLUDE_OIDC_') && text(env, name) !== '');
    if (other === undefined) return null;
    throw refused('INTERLUDE_OIDC_ISSUER', `is not set, but ${other} is. Set it to the URL of your provider`);
  }
  checkIssuer(issuer);
  const settings: OidcSettings = {
    issuer,
    clientId: required(env, 'INTERLUDE_OIDC_CLIENT_ID'),
    clientSecret: required(env, 'INTERLUDE_OIDC_CLIENT_SECRET'),
    clientAuth: clientAuthOf(text(env, 'INTERLUDE_OIDC_CLIENT_AUTH')),
    scopes: scopesOf(text(env, 'INTERLUDE_OIDC_SCOPES') || 'openid profile email'),
    groupsClaim: text(env, 'INTERLUDE_OIDC_GROUPS_CLAIM') || 'groups',
    adminGroups: list(env, 'INTERLUDE_OIDC_ADMIN_GROUPS'),
    operatorGroups: list(env, 'INTERLUDE_OIDC_OPERATOR_GROUPS'),
    viewerGroups: list(env, 'INTERLUDE_OIDC_VIEWER_GROUPS'),
    firstAdmin: text(env, 'INTERLUDE_FIRST_ADMIN') || null,
    publicUrl: publicUrlOf(required(env, 'INTERLUDE_PUBLIC_URL'), text(env, 'INTERLUDE_BASE_PATH')),
  };
  const { adminGroups, operatorGroups, viewerGroups, firstAdmin } = settings;
  if (firstAdmin === null && adminGroups.length + operatorGroups.length + viewerGroups.length === 0) {
    throw refused(
      'INTERLUDE_OIDC_ADMIN_GROUPS',
      'and the other group settings are not set, so no one could sign in. Set at least one',
    );
  }
  return settings;
}

/** True for a loopback URL, which needs no TLS. */
export function isLoopback(url: URL): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
}

function checkIssuer(issuer: string): void {
  const url = URL.canParse(issuer) ? new URL(issuer) : null;
  const isSafe = url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url)));
  if (!isSafe) {
    throw refused('INTERLUDE_OIDC_ISSUER', 'is not an https URL (http is allowed on this machine only). Correct it');
  }
  if (url.pathname.includes('/.well-known/')) {
    throw refused('INTERLUDE_OIDC_ISSUER', 'is a discovery document. Remove /.well-known/ and everything after it');
  }
  if (hasMoreThanPath(issuer, url)) {
    throw refused('INTERLUDE_OIDC_ISSUER', 'contains a user name, password, query or fragment. Remove it');
  }
}

function publicUrlOf(address: string, basePath: string): string {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || hasMoreThanPath(address, url)) {
    throw refused('INTERLUDE_PUBLIC_URL', 'is not a URL such as https://interlude.example.com. Correct it');
  }
  if (!isBeneath(address, basePath)) {
    throw refused('INTERLUDE_PUBLIC_URL', `does not end in ${basePath}, the INTERLUDE_BASE_PATH. Correct one of them`);
  }
  // normalized as browsers do, because the provider compares redirect URIs character by character
  return url.href.replace(/\/+$/, '');
}

function hasMoreThanPath(address: string, url: URL): boolean {
  return /[?#]/.test(address) || url.username !== '' || url.password !== '';
}

function clientAuthOf(value: string): OidcSettings['clientAuth'] {
  if (value === '') return null;
  if (value === 'basic' || value === 'post') return value;
  throw refused('INTERLUDE_OIDC_CLIENT_AUTH', 'is neither "basic" nor "post". Set it to one of them, or remove it');
}

function scopesOf(value: string): string {
  const scopes = value.split(/[\s,]+/);
  if (scopes.includes('openid')) return scopes.join(' ');
  throw refused('INTERLUDE_OIDC_SCOPES', 'lacks openid, without which the provider sends no identity. Add it');
}

function required(env: Env, name: string): string {
  const value = text(env, name);
  if (value === '') throw refused(name, 'is not set, but INTERLUDE_OIDC_ISSUER requires it. Set it');
  return value;
}

function list(env: Env, name: string): string[] {
  const names = (env[name] ?? '').split(',').map((one) => one.trim());
  return names.filter((one) => one !== '');
}

function text(env: Env, name: string): string {
  return env[name]?.trim() ?? '';
}

function refused(name: string, problem: string): AppError {
  return new AppError('unavailable', `${name} ${problem}.`);
}

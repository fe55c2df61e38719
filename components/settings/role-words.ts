import type { Role } from '@interlude/protocol/scope';

export const ROLE_WORD: Record<Role, string> = {
  viewer: 'Viewer',
  operator: 'Operator',
  admin: 'Admin',
  owner: 'Owner',
  runner: 'Runner',
  issuer: 'Issuer of embeds',
  timer: 'Timer',
  monitor: 'Monitor',
};

/** What somebody with that role may, after "may". */
export const ROLE_MAY: Record<Role, string> = {
  viewer: 'read everything here, and change nothing',
  operator: 'read everything here, write to agents, and answer what they ask',
  admin: 'do everything here: read, write to agents, answer what they ask, and decide who else may',
  owner: 'do everything, also speak as any agent',
  runner: 'send what its agents do, and fetch what people ask of them; it reads no session and decides nothing',
  issuer: 'make tokens for embeds, and nothing else',
  timer: 'have done what is due, and nothing else',
  monitor: 'read how the server does, and nothing else',
};

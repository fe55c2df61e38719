import { newEmbedSchema } from '@interlude/protocol/access';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { redactedRoles } from '@/lib/server/access/access-settings';
import { CredentialCache } from '@/lib/server/access/credential-cache';
import { postEmbedToken } from '@/lib/server/access/embeds';
import { OWNER } from '@/lib/server/access/principal';
import { PLAIN_DIGESTS } from '@/lib/server/access/shown-digests';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

const CONSOLE = 'https://console.example';

describe('a redacted reader', () => {
  it('is configured by role, for viewers and operators', () => {
    expect(redactedRoles({})).toEqual([]);
    expect(redactedRoles({ INTERLUDE_REDACT_ROLES: ' Viewer,operator, ' })).toEqual(['viewer', 'operator']);
  });

  it('is never left unredacted by a misspelled role', () => {
    for (const INTERLUDE_REDACT_ROLES of ['viewers', 'admin', 'viewer operator']) {
      expect(() => redactedRoles({ INTERLUDE_REDACT_ROLES })).toThrow('INTERLUDE_REDACT_ROLES contains');
    }
  });

  describe('an embed', () => {
    let database: TestDatabase;
    let credentials: CredentialCache;
    beforeEach(async () => {
      database = await temporaryDatabase();
      credentials = new CredentialCache({ database, now: Date.now });
    });
    afterEach(async () => {
      credentials.close();
      await database.dispose();
    });

    async function principalOf(asked: object) {
      const body = newEmbedSchema.parse({ fleet: true, parentOrigin: CONSOLE, ...asked });
      const { token } = await postEmbedToken(
        {
          body,
          principal: OWNER,
          ids: {},
          request: new Request(CONSOLE),
          digests: PLAIN_DIGESTS,
          whenOver: () => () => {},
        },
        { database, now: Date.now, credentials, embedOrigins: [CONSOLE] },
      );
      return credentials.find(token);
    }

    it('is redacted unless the console requests otherwise', async () => {
      expect(await principalOf({})).toMatchObject({ kind: 'embed', redacts: true });
      expect(await principalOf({ redact: true })).toMatchObject({ redacts: true });
      expect(await principalOf({ redact: false })).toMatchObject({ redacts: false });
    });
  });
});

import { OWNER } from '@/lib/access/principal';

/** Of a request as its handler gets it: that the owner sends it. */
export const byOwner = { principal: OWNER, whenOver: () => () => {} };

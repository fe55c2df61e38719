import { inProcessServer } from '../support/server-target';
import { describeTurnAtContract } from './turn-at-contract';

describeTurnAtContract('in this process', inProcessServer);

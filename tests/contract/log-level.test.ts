import { inProcessServer } from '../support/server-target';
import { describeLogLevelContract } from './log-level-contract';

describeLogLevelContract('in this process', inProcessServer);

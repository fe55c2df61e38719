import { inProcessServer } from '../support/server-target';
import { describeObligationsContract } from './obligations-contract';

describeObligationsContract('in this process', inProcessServer);

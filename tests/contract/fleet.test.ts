import { inProcessServer } from '../support/server-target';
import { describeFleetContract } from './fleet-contract';

describeFleetContract('in this process', inProcessServer);

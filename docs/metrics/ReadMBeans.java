import com.sun.tools.attach.VirtualMachine;
import java.util.Map;
import java.util.TreeMap;
import javax.management.MBeanAttributeInfo;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** The MBeans of a broker on this machine whose names match, with every attribute: java ReadMBeans.java PID REGEX. */
class ReadMBeans {
    public static void main(String[] arguments) throws Exception {
        VirtualMachine broker = VirtualMachine.attach(arguments[0]);
        String address = broker.startLocalManagementAgent();
        broker.detach();
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            var beans = connector.getMBeanServerConnection();
            Map<String, String> found = new TreeMap<>();
            for (ObjectName name : beans.queryNames(new ObjectName("kafka*:*"), null)) {
                if (!name.toString().matches(arguments[1])) {
                    continue;
                }
                StringBuilder values = new StringBuilder();
                for (MBeanAttributeInfo attribute : beans.getMBeanInfo(name).getAttributes()) {
                    values.append(' ').append(attribute.getName()).append('=');
                    values.append(beans.getAttribute(name, attribute.getName()));
                }
                found.put(name.toString(), values.toString());
            }
            found.forEach((name, values) -> System.out.println(name + values));
        }
    }
}

// Guava's BloomFilter behind the protocol of ../program.go. Run from source:
//
//	java -cp /usr/share/java/guava.jar Guava.java
//
// Variants are STRATEGY-FUNNEL: 64-utf8, 32-bytes and so on.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.*;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.function.Function;

public class Guava {
    public static void main(String[] args) throws Exception {
        System.out.println("Guava " + version() + ", Java " + System.getProperty("java.version"));
        BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = jobs.readLine()) != null; ) {
            try {
                run(line.split("\t"));
                System.out.println("ok");
            } catch (Exception e) {
                System.out.println(e.toString().replace('\n', ' '));
            }
        }
    }

    static void run(String[] job) throws Exception {
        switch (job[2].substring(3)) {
            case "utf8" -> run(job, Funnels.stringFunnel(StandardCharsets.UTF_8), Guava::text);
            case "utf16" -> run(job, Funnels.unencodedCharsFunnel(), Guava::text);
            case "bytes" -> run(job, Funnels.byteArrayFunnel(), key -> key);
            case "long" -> run(job, Funnels.longFunnel(), key -> Long.valueOf(text(key)));
            case "int" -> run(job, Funnels.integerFunnel(), key -> Integer.valueOf(text(key)));
            default -> throw new IllegalArgumentException(job[2]);
        }
    }

    static <T> void run(String[] job, Funnel<? super T> funnel, Function<byte[], T> decode) throws Exception {
        Path dir = Path.of(job[1]);
        BloomFilter<T> filter;
        if (job[0].equals("read")) {
            try (InputStream in = Files.newInputStream(dir.resolve("filter"))) {
                filter = BloomFilter.readFrom(in, funnel);
            }
        } else {
            filter = create(funnel, Long.parseLong(job[3]), Double.parseDouble(job[4]), job[2].startsWith("32"));
            for (byte[] key : keys(dir.resolve("keys"))) filter.put(decode.apply(key));
            try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(dir.resolve("filter")))) {
                filter.writeTo(out);
            }
        }
        StringBuilder answers = new StringBuilder();
        for (byte[] key : keys(dir.resolve("probes"))) answers.append(filter.mightContain(decode.apply(key)) ? '1' : '0');
        Files.writeString(dir.resolve("answers"), answers);
    }

    // create with the older strategy, ordinal 0, is no longer public.
    @SuppressWarnings("unchecked")
    static <T> BloomFilter<T> create(Funnel<? super T> funnel, long n, double p, boolean older) throws Exception {
        if (!older) return BloomFilter.create(funnel, n, p);
        Object strategy = Class.forName("com.google.common.hash.BloomFilterStrategies").getEnumConstants()[0];
        for (Method method : BloomFilter.class.getDeclaredMethods()) {
            if (method.getName().equals("create") && method.getParameterCount() == 4) {
                method.setAccessible(true);
                return (BloomFilter<T>) method.invoke(null, funnel, n, p, strategy);
            }
        }
        throw new NoSuchMethodException("BloomFilter.create(funnel, n, p, strategy)");
    }

    static String version() throws IOException {
        Properties pom = new Properties();
        try (InputStream in = BloomFilter.class.getResourceAsStream("/META-INF/maven/com.google.guava/guava/pom.properties")) {
            if (in != null) pom.load(in);
        }
        return pom.getProperty("version", "of unknown version");
    }

    static String text(byte[] key) {
        return new String(key, StandardCharsets.UTF_8);
    }

    static List<byte[]> keys(Path path) throws IOException {
        List<byte[]> keys = new ArrayList<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)))) {
            for (int count = in.readInt(); count > 0; count--) keys.add(in.readNBytes(in.readInt()));
        }
        return keys;
    }
}
